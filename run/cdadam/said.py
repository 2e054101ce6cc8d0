"""What the CD-Adam paper says of Figures 1, 3 and 5 to 10, word for word."""

AROUND_1 = (
    "Our proposed method achieves around 32x communication cost improvement over the original"
    " AMSGrad and around 5x over 1-bit Adam"
)
SMALLER_3 = (
    "our proposed CD-Adam obtains a smaller gradient norm than EF21 and 1-bit Adam under the same"
    " epoch or communication budget"
)
LATER_3 = (
    "1-bit Adam is much slower due to the warmup process. At later stages, CD-Adam shows a clear"
    " advantage compared with EF21"
)
BEST_3 = (
    "CD-Adam achieves the overall best test accuracy compared with EF21 and 1-bit Adam, under the"
    " same communication budget"
)
ALL_5 = (
    "our proposed CD-Adam achieves better performance than EF21 and 1-bit Adam under the same"
    " communication cost"
)
NORM_EPOCHS = (
    "our proposed CD-Adam obtains a smaller gradient norm than EF21 and 1-bit Adam under the same"
    " epochs when training and testing"
)
LATER = "At later stages, CD-Adam shows a clear advantage compared with EF21. Our method "
SIGNIFICANT_9 = (
    "our proposed method maintains a significant advantage on training/testing loss and accuracy"
    " compared with EF21 and 1-bit Adam"
)
BOTH_10 = (
    "our proposed method achieves better training/testing loss and accuracy than EF21. Furthermore,"
    " CD-Adam still achieves better performance on testing loss and testing accuracy than 1-bit"
    " Adam"
)
SAID = {  # {figure: {quantity: what is said}}
    5: dict.fromkeys(("loss", "norm", "accuracy"), ALL_5),
    6: {
        "loss": LATER + "also shows better performance on testing loss than 1-bit Adam",
        "norm": NORM_EPOCHS,
        "accuracy": LATER + "shows better performance on testing accuracy compared with 1-bit Adam",
    },
    7: {
        "loss": "our proposed method obtains better training/testing loss than EF21 and 1-bit Adam",
        "norm": "our proposed CD-Adam obtains smaller training/testing gradient norms than EF21 and"
        " 1-bit Adam under the same communication budget",
        "accuracy": "CD-Adam obtains better training/testing accuracy than EF21 and 1-bit Adam",
    },
    8: {
        "loss": "our proposed method achieves better training/testing loss than EF21, though EF21"
        " intermediately shows a faster decrease in the loss function. Our method shows better"
        " performance on testing loss compared with 1-bit Adam",
        "norm": "our proposed CD-Adam obtains a smaller gradient norm than EF21 and 1-bit Adam"
        " under the same epochs",
        "accuracy": "our proposed method achieves high accuracy on both the training and testing"
        " sets. [...] Our CD-Adam also shows a better testing accuracy than 1-bit Adam",
    },
    9: {
        "loss": SIGNIFICANT_9,
        "norm": "our proposed CD-Adam achieves smaller gradient norms than EF21 and 1-bit Adam",
        "accuracy": SIGNIFICANT_9,
    },
    10: {
        "loss": BOTH_10,
        "norm": "CD-Adam achieves better training/testing gradient norms compared with EF21 and"
        " 1-bit Adam",
        "accuracy": BOTH_10,
    },
}
EARLY = {
    3: "At the early stage of the training process, CD-Adam and EF21 obtain a similar speed of"
    " reducing the training loss, while 1-bit Adam is much slower due to the warmup process",
    6: "at the early stage of the training process, CD-Adam and EF21 obtain a similar speed of"
    " reducing the training loss, while 1-bit Adam is quite faster due to the warm-up process."
    " [...] a similar speed of increasing the accuracy, while 1-bit Adam is faster",
}
WORSE = dict.fromkeys(
    (5, 7, 9),
    "for 1-bit Adam, since it needs an uncompressed warm-up procedure for a few epochs, the"
    " communication efficiency is much worse compared with CD-Adam and EF21",
)
MIDWAY = {
    7: "EF21 intermediately shows a faster decrease in the loss function. [...] EF21 intermediately"
    " shows a faster increase in accuracy as well",
    8: "EF21 intermediately shows a faster decrease in the loss function. [...] EF21 intermediately"
    " shows a faster increase in accuracy",
}
DIVERGES_9 = (
    "1-bit Adam initially shows a lower gradient norm while its gradient norm diverges later"
)
AHEAD_10 = "1-bit Adam keeps a slighter better performance on training loss and training accuracy"
