// Package problem holds the one error type that users see. It knows no
// transport: api maps codes to HTTP statuses, ws to close codes, the command
// line to exit statuses. It has no goroutine and no lock.
package problem
