package store

import (
	"context"
	"fmt"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/ptyd/ptyd/internal/depcache"
)

// shared holds the stores of this process by database: two parts of one process
// that open the same file share one writer, instead of waiting for each other's
// locks, and one batcher.
var shared = depcache.New[string](depcache.Options[settings, *Store]{
	Close: func(s *Store) {
		if err := s.Close(); err != nil {
			s.log.Error("close the database", zap.Error(err))
		}
	},
	Equal:       func(a, b settings) bool { return a == b },
	CloseUnused: true,
})

// Shared is one user's hold on a store that others of this process may use too.
type Shared struct {
	*Store
	handle *depcache.Handle[*Store]
}

// OpenShared returns the store of o.DSN, which it opens unless somebody has.
// Asking for one that is open with other settings is a
// *depcache.ConflictError.
func OpenShared(ctx context.Context, o Options) (*Shared, error) {
	key, err := canonical(o.DSN)
	if err != nil {
		return nil, err
	}
	h, err := shared.Get(ctx, key, o.settings(), func(ctx context.Context) (*Store, error) { return Open(ctx, o) })
	if err != nil {
		return nil, err
	}
	return &Shared{Store: h.Value(), handle: h}, nil
}

// Close gives the store back; the last user's Close closes the database.
// Closing twice does nothing.
func (s *Shared) Close() error {
	s.handle.Release()
	return s.closeResult()
}

// canonical is the one name of a database, whatever way its path is written.
func canonical(dsn string) (string, error) {
	if err := checkDSN(dsn); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(dsn)
	if err != nil {
		return "", fmt.Errorf("open store: %w", err)
	}
	// The file itself may not be there yet; its directory must be.
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("open store: %w", err)
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}
