// Package property checks that properties hold for random values.
//
// Check runs a function many times, each time with a T that draws other values. The values grow from run to run, so the first
// failure is likely a small one. A failing run logs its seed and the values that it drew:
//
//	property.Check(t, func(t *property.T) {
//		n := property.IntRange(1, 9).Draw(t, "n")
//		...
//	})
//
// HEADGATE_PROPERTY_SEED=SEED runs that one case again. There is no search for a smaller case. The packages of the library test
// with this package, so that its module requires no other module.
package property
