package store

import (
	"context"
	"database/sql"
	"sync"
)

// statements keeps queries compiled that are asked again and again: parsing one
// takes SQLite as long as answering it. What is asked once, as a migration is,
// is not kept, and never more than maxStatements are: the texts are constants of
// this package but for filters.
type statements struct {
	db *sql.DB

	mu   sync.Mutex // guards seen and kept
	seen map[string]struct{}
	kept map[string]*sql.Stmt
}

const maxStatements = 64

func newStatements(db *sql.DB) *statements {
	return &statements{db: db, seen: map[string]struct{}{}, kept: map[string]*sql.Stmt{}}
}

// get returns the compiled query, nil where there is none; worth says that it
// should be compiled, because it was asked before.
func (s *statements) get(query string) (st *sql.Stmt, worth bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st = s.kept[query]; st != nil || len(s.seen) >= maxStatements {
		return st, false
	}
	_, worth = s.seen[query]
	s.seen[query] = struct{}{}
	return nil, worth
}

// compile keeps query compiled; nil where that fails, which whoever asks it
// will be told again. The caller must not hold the connection of a db that has
// only one.
func (s *statements) compile(ctx context.Context, query string) *sql.Stmt {
	st, err := s.db.PrepareContext(ctx, query)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	other := s.kept[query]
	if other == nil {
		s.kept[query] = st
	}
	s.mu.Unlock()
	if other != nil { // another call was first
		_ = st.Close()
		return other
	}
	return st
}

// row is QueryRowContext outside a transaction.
func (s *statements) row(ctx context.Context, query string, args ...any) *sql.Row {
	st, worth := s.get(query)
	if worth {
		st = s.compile(ctx, query)
	}
	if st == nil {
		return s.db.QueryRowContext(ctx, query, args...)
	}
	return st.QueryRowContext(ctx, args...)
}
