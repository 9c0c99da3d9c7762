// Package instances tests that instances with wrong clocks decide alike on a real store, in windows of the calendar. The
// clocks of real servers cannot be moved, so the months of these tests begin around the present time.
package instances
