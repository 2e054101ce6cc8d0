// Cells name their column, for narrow screens; what scrolls can be scrolled with the keyboard.
addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table.docutils")) {
    const names = [...(table.tHead?.rows[0].cells || [])].map((cell) => cell.textContent);
    for (const row of table.tBodies[0].rows)
      [...row.cells].forEach((cell, i) => { if (names[i]) cell.dataset.column = names[i]; });
  }
  for (const formula of document.querySelectorAll(".inline-formula"))
    formula.classList.toggle("wide", formula.offsetWidth > formula.closest("p, td, li, dd, div").clientWidth);
  for (const box of document.querySelectorAll("pre, .inline-formula.wide, .table-wrapper, .toc-tree-container, .sidebar-scroll"))
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
});

// Names for the two columns beside a page, which screen readers list as landmarks.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelector("aside.sidebar-drawer")?.setAttribute("aria-label", "Pages");
  document.querySelector("aside.toc-drawer")?.setAttribute("aria-label", "On this page");
});
