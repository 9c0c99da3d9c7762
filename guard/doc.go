// Package guard is the spine of Headgate: it identifies a request, finds the
// rules that speak for it, lets the store decide, and reports. The proxy, the
// middleware, the decision server and the simulator all walk this one path.
//
//	identify   rule.Rule.AppendKey   who is counted
//	match      rule.Index.Match      which rules speak
//	decide     headgate.Store.Apply  one group for the enforced rules
//	report     Observer.Observe      counters and logs
//
// A Guard knows no protocol: a front turns bytes into a headgate.Request, and an
// Answer into bytes. It acts on nothing: whether a refusal becomes a status, an
// error or a line in a report is the front's affair.
//
// Enforced rules are all or nothing: they are one group of the store, so a
// refusal by one leaves the counters of the others alone. Shadow rules are each a
// group of their own: they count as if they were enforced alone, and neither end
// nor undo anything.
package guard
