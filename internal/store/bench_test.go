package store

import (
	"testing"

	"github.com/ptyd/ptyd/internal/ptymgr"
)

// BenchmarkOpen is the store's part of the daemon's start.
func BenchmarkOpen(b *testing.B) {
	content, err := migrated()
	if err != nil {
		b.Fatal(err)
	}
	dsn := writeTemp(b, content)
	for b.Loop() {
		s, err := Open(b.Context(), Options{DSN: dsn})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkTokenByHash is what each request with a token costs.
func BenchmarkTokenByHash(b *testing.B) {
	content, err := migrated()
	if err != nil {
		b.Fatal(err)
	}
	db := &database{Store: openAt(b, writeTemp(b, content))}
	if err := db.InsertToken(b.Context(), newToken(db.user(b, "ann"), "ci"), hash("a")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := db.TokenByHash(b.Context(), hash("a")); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCreateSession is a create and its end, three commits.
func BenchmarkCreateSession(b *testing.B) {
	content, err := migrated()
	if err != nil {
		b.Fatal(err)
	}
	db := &database{Store: openAt(b, writeTemp(b, content))}
	owner := db.user(b, "ann")
	for b.Loop() {
		r := db.create(b, record(owner, ""))
		if err := db.MarkRunning(b.Context(), r.ID, 1, epoch, ""); err != nil {
			b.Fatal(err)
		}
		db.end(b, r.ID, ptymgr.Exited, epoch)
	}
}
