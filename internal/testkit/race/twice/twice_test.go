package main

import (
	"slices"
	"testing"
)

// TestDependents checks all ways in which a test depends on the detector: it reads race.On, calls
// race.Fewer or another function that reads race.On, runs storetest, or is built only without the detector.
func TestDependents(t *testing.T) {
	t.Parallel()
	suite, err := dependents("../../../../store/storetest", nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := dependents("testdata", suite)
	want := []string{"FuzzDirect", "TestDirect", "TestFewer", "TestSuite", "TestThroughTwo", "TestWithout"}
	if got := testsAmong(found); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	all, err := allTests("testdata")
	want = slices.Insert(want, 1, "TestClock")
	want = slices.Insert(want, 4, "TestPlain")
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("all are %v, %v, want %v", all, err, want)
	}
}
