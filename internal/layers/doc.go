// Package layers holds the test of the import rules: which package may know
// which, and which outside package belongs to whom. It has no code.
package layers
