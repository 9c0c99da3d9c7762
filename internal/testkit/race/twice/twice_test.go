package main

import (
	"slices"
	"testing"
)

// A test is found when it asks for the detector, calls a function that does, plays the
// suite of stores, or is built without the detector only.
func TestDependents(t *testing.T) {
	t.Parallel()
	suite, err := dependents("../../../../store/storetest", nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := dependents("testdata", suite)
	want := []string{"FuzzDirect", "TestDirect", "TestSuite", "TestThroughTwo", "TestWithout"}
	if got := testsAmong(found); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	all, err := allTests("testdata")
	want = slices.Insert(want, 1, "TestClock")
	want = slices.Insert(want, 3, "TestPlain")
	if err != nil || !slices.Equal(all, want) {
		t.Errorf("all are %v, %v, want %v", all, err, want)
	}
}
