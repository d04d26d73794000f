package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// micros is a time as it is stored.
func micros(t time.Time) int64 { return t.UnixMicro() }

// microsOrNull stores the zero time as NULL.
func microsOrNull(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }

// timeOrZero and timePtr read a column that may be NULL.
func timeOrZero(us sql.NullInt64) time.Time {
	if !us.Valid {
		return time.Time{}
	}
	return fromMicros(us.Int64)
}

func timePtr(us sql.NullInt64) *time.Time {
	if !us.Valid {
		return nil
	}
	t := fromMicros(us.Int64)
	return &t
}

func intPtr(n sql.NullInt64) *int {
	if !n.Valid {
		return nil
	}
	v := int(n.Int64)
	return &v
}

func nullInt(n *int) sql.NullInt64 {
	if n == nil {
		return sql.NullInt64{}
	}
	return sql.NullInt64{Int64: int64(*n), Valid: true}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// list is a []string in a column of JSON text; nil and empty are one.
type list []string

func (l list) text() (string, error) {
	if l == nil {
		l = list{}
	}
	b, err := json.Marshal(l)
	return string(b), err
}

// Scan implements sql.Scanner.
func (l *list) Scan(v any) error { return scanJSON(v, l) }

// labels is a map in an aggregate of JSON text; nil where there are none.
type labels map[string]string

// Scan implements sql.Scanner.
func (l *labels) Scan(v any) error {
	*l = nil
	if v == nil {
		return nil
	}
	if err := scanJSON(v, l); err != nil {
		return err
	}
	if len(*l) == 0 {
		*l = nil
	}
	return nil
}

func scanJSON(v, dest any) error {
	switch v := v.(type) {
	case string:
		return json.Unmarshal([]byte(v), dest)
	case []byte:
		return json.Unmarshal(v, dest)
	default:
		return fmt.Errorf("scan JSON from %T", v)
	}
}
