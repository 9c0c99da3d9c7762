// Package storetest is the contract of headgate.Store as one suite of tests: a
// store is done when it passes.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T, clock *storetest.Clock) headgate.Store {
//			return newStoreThatReads(clock.Now)
//		})
//	}
//
// Time is a Clock that the suite moves, in whole microseconds, so that expiry is
// tested without waiting and every store sees identical traces. A store that
// cannot do something says so by name, with Without and Lacks; nothing is skipped in
// silence.
//
// With the race detector the random requests of one goroutine are an eighth: run the
// suite without the detector too.
//
// The traces are judged by package limit/twin, which is deliberately dumb.
package storetest
