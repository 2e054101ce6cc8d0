"""The same bits under the settings of other processors."""
