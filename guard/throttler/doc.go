// Package throttler is the stage of a guard that holds requests back while the service has as
// many as it can do. Package throttle decides; this package reads the facts from requests and
// answers, keeps the time, and resumes requests that wait.
//
//	stage, err := throttler.New(throttler.Config{Limits: throttler.Limits{Concurrency: 16}})
//	g, err := guard.New(guard.Config{Rules: rules, Stages: []guard.Stage{stage}})
//
// # Facts
//
// The tenant is a part of the request, as a client of fair share is. The class comes from a header
// of trusted peers, or else is the default. The deadline is the earliest of: the deadline of the
// context of Admit, the header grpc-timeout, and a header of trusted peers with milliseconds.
// Without any of them it is Config.Deadline. Deadlines are at most MaxDeadline away. The route is
// the method and the path, in which segments with digits and long segments count as one.
//
// The service gets the class in Headgate-Criticality, and the time that is left, less the wait, in
// Headgate-Timeout, in milliseconds. Values of these headers from other clients are removed.
//
// The service reports its work in the header or trailer Headgate-Work, as cpu=12ms. The header does
// not reach the client. Without it, the service time counts as the work.
//
// # Ends
//
// A request in a hang of the service, its probe, is ended by Handle.End: see package throttle. The client gets the
// answer of its front or handler.
//
// The slot of a request is free when its answer has ended. A request that becomes a stream gives
// up its slot then, unless CountStreams is set, and teaches the predictor nothing. In mode Shadow
// requests pass without delay, and the queue is a model: its figures are estimates.
package throttler
