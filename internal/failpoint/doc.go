// Package failpoint names the places in the code where a test may stop, kill
// or disturb the process, and shifts the clock for tests of expiry. It exists
// only in builds with the tag ptydtest: in every other build Hit is an empty
// function, Err returns nil and Now is time.Now, so that calls vanish by
// inlining, the names with them, and the environment variables are unknown.
// TestShippedBinary holds this.
//
// The variables of a test build, read once at the first use:
//
//	PTYD_TEST_FAILPOINTS     name=action pairs, separated by semicolons
//	PTYD_TEST_CLOCK_OFFSET   a duration that Now adds, such as 6m or -1h
//	PTYD_TEST_TIMES          name=duration pairs, separated by semicolons: the
//	                         delays that Duration gives instead of the real ones
//
// The actions:
//
//	kill                  SIGKILL this process
//	kill@FILE             the same, unless FILE exists; creates it: one of
//	                      several processes with this environment is killed
//	panic                 panic with the name
//	pause:FILE            create FILE, wait until somebody removes it, go on
//	error:TEXT            Err returns an error with TEXT (Hit ignores it)
//	enospc                Err returns ENOSPC
//
// `name=3*kill` acts at the third hit only; without a number the action is
// taken at every hit.
//
// The package has no goroutine. Its one lock guards the hit counters and is
// never held while an action runs.
package failpoint
