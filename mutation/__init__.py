"""How good the tests are: every small change to the code must make one of them fail."""
