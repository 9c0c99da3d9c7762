// Package storetest is the contract of headgate.Store as a suite of tests. A store is
// correct when it passes.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
//			return newStoreThatReads(clock.Now)
//		})
//	}
//
// Time is a Clock that the suite moves, in whole microseconds. Expiry is tested without
// waiting, and every store gets identical traces. A store declares missing features with
// Without and Lacks. The output names every declared gap.
//
// With the race detector or -short, an eighth of the sequential random requests runs. Run the suite
// without both too.
//
// Package internal/limit/twin, a slow and simple model, judges the traces.
package storetest
