// Package keeper is the process that outlives the daemon: it starts the worker,
// which is the daemon proper, holds what must survive it, and starts the next
// one when it dies. It knows nothing of sessions.
//
// Goroutines, all of them Run's, which waits for them before it returns:
//   - Run's own, locked to its thread for ever: all state is its, and only it
//     forks, waits for children and executes. There is no lock on that state;
//     others hand it functions through the channel calls;
//   - one that waits for notices to arrive (Server.Watch) and only says so;
//   - upward.run, which sends to the service manager, where there is one;
//   - one that reads what systemctl says, while it is asked;
//   - one that asks the person at the terminal, while that is asked.
//
// Lock order: upward.mu is the only lock and is held over no call.
//
// DESIGN.md has the order of the steps, and what survives what.
package keeper
