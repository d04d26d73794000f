// Package web embeds the page that vite builds from web/src into web/dist.
// It has no goroutine and no lock.
package web
