// Package ident makes the ids of rows: text that sorts by time of creation and
// is never used twice. Ids are names, not credentials: whoever knows one gains
// nothing by it. It has no goroutine and no lock.
package ident
