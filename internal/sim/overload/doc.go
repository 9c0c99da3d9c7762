// Package overload is a discrete-event simulation of a service under too much work, with
// clients that retry. It runs the real throttle.Throttler, and other designs, in virtual time.
//
//	f := overload.Run(scenario, seed, true, overload.NewThrottled(throttle.Config{Concurrency: 16}))
//
// # Service
//
// Four cores are shared by all runnable jobs in equal parts. Above 64 runnable jobs the service
// is 0.1 % slower for each more. Then a job waits for an exponential time with a mean of 10 ms.
// The service does not stop when a client leaves.
//
// In scenario hang, it answers nothing for 10 s, and the proxy gives up each attempt after 2 s.
//
// # Clients
//
// Logical requests arrive in a Poisson stream from ten tenants, in classes of 2, 8, 50 and 40 %.
// A logical request makes up to three attempts. Each has a deadline of 500 ms. The pause before
// the next attempt is 50 ms, doubled each time, times 0.5 to 1.5. After a refusal the pause is at
// least Retry-After, which clients take as 0.1 s to 1 s, plus up to half.
//
// # Figures
//
// A run lasts 60 s, and its first 20 s do not count. See Figures.
package overload
