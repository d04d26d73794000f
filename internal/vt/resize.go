package vt

// Resize is to come.
func (t *Terminal) Resize(cols, rows int) {}
