package procfs

import (
	"fmt"
	"os"
	"strconv"
)

// Server returns root and those of its descendants that have no controlling
// terminal: the processes of the server itself, without what runs in its
// terminals. The server must have been started in a session of its own.
func Server(root int) []int {
	all := map[int][]proc{} // by parent
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return []int{root}
	}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		b, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", e.Name()))
		if err != nil {
			continue // it ended meanwhile
		}
		if p, ok := parseStat(b); ok {
			all[p.parent] = append(all[p.parent], p)
		}
	}
	return server(root, all)
}

func server(root int, children map[int][]proc) []int {
	pids := []int{root}
	for i := 0; i < len(pids); i++ {
		for _, p := range children[pids[i]] {
			if p.terminal == 0 {
				pids = append(pids, p.pid)
			}
		}
	}
	return pids
}
