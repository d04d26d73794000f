// Package service makes ptyd a service of systemd, for the machine or for one
// person, and unmakes it. It writes files and calls systemctl; who reads the
// answers is the command line's business. It has no goroutine and no lock.
package service
