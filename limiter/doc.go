// Package limiter applies one limit without rules: Keyed to many keys, Single to
// one thing.
//
// It does the job of golang.org/x/time/rate where there are many keys: memory is
// bounded and allocated once, a decision allocates nothing, and it says what is
// left and when to come again. Beside an error the verdict is Deny. Several limits on one request, matching and
// actions are the work of package guard.
package limiter
