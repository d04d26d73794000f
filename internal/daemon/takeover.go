package daemon

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ptyd/ptyd/internal/buffer"
	"github.com/ptyd/ptyd/internal/config"
	"github.com/ptyd/ptyd/internal/fdstore"
	"github.com/ptyd/ptyd/internal/keeper"
	"github.com/ptyd/ptyd/internal/notifyproto"
	"github.com/ptyd/ptyd/internal/problem"
	"github.com/ptyd/ptyd/internal/ptymgr"
	"github.com/ptyd/ptyd/internal/store"
)

// Takeover is what a binary can take over from another release. It says so
// itself, before anything stops for it (serve --can-adopt), so the members and
// the names in Reads must be understood by releases before and after.
type Takeover struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	// Reads are the versions of each format in memory that it goes on with.
	Reads map[string][]int `json:"reads"`
	// Schema is what it knows of the database's, and Floor what another must
	// know to go on with the database afterwards.
	Schema int `json:"schema"`
	Floor  int `json:"schema_floor"`
}

// formats are the versions of what lies in memory while no worker lives, as
// this program writes them.
func formats() map[string]int {
	return map[string]int{
		"keeper": keeper.StateVersion, "ends": notifyproto.ExitsVersion, "global": fdstore.GlobalVersion,
		"ring": buffer.Version, "session": ptymgr.BlockVersion,
	}
}

// OwnTakeover is this program's.
func OwnTakeover(b config.Build) (Takeover, error) {
	schema, err := store.KnownSchema()
	if err != nil {
		return Takeover{}, err
	}
	t := Takeover{Version: b.Version, Commit: b.Commit, Reads: map[string][]int{}, Schema: schema.Known, Floor: schema.Floor}
	for name, v := range formats() {
		t.Reads[name] = []int{v}
	}
	return t, nil
}

// refusal tells why t can't follow a program that writes those formats, knows
// so much of the schema and works on database; nil where it can. A migration
// after which this program could not come back needs oneWay.
func (t *Takeover) refusal(writes map[string]int, known int, database store.Schema, oneWay bool) error {
	for _, name := range slices.Sorted(maps.Keys(writes)) {
		if v := writes[name]; !slices.Contains(t.Reads[name], v) {
			return problem.New(problem.Unsupported, "ptyd %s can't take over the sessions that run: it does not know version %d of the format %q", t.Version, v, name).
				WithHint("take a release nearer to this one, or end the sessions and start the other ptyd")
		}
	}
	switch {
	case t.Schema < database.Known && t.Schema < database.Floor:
		return problem.New(problem.Unsupported, "ptyd %s knows the database's schema up to version %d and needs %d to work with it", t.Version, t.Schema, database.Floor).
			WithHint("a release so old can't follow")
	case t.Schema > database.Known && t.Floor > known && !oneWay:
		return problem.New(problem.Conflict, "ptyd %s migrates the database to version %d, after which this release (it knows %d) could not come back", t.Version, t.Schema, known).
			WithHint("copy the state directory's ptyd.db, then ask again with --one-way")
	}
	return nil
}

// describe is t for people.
func (t *Takeover) describe() string { return fmt.Sprintf("%s (%s)", t.Version, t.Commit) }
