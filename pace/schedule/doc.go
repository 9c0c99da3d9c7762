// Package schedule is the arithmetic of pacing: which part of a limit is one
// instance's in each window, from when a plan holds, and when within a window its
// permits open. It is pure: time is an argument.
package schedule
