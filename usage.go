package headgate

// Usage is a change of what a customer has used of a quota, for a Meter.
type Usage struct {
	// Customer is the customer's name; "" for requests without a name. Quota is the name of the quota. Both are valid
	// only during the call.
	Customer, Quota string
	// At is the time of the decision: that of the store, or that of the instance if the store did not decide.
	At Instant
	// Admitted are the units that were admitted. Metered is the part of Admitted beyond the included units. Refused are the
	// units that the quota refused. A Correction and a Refund may have negative numbers.
	Admitted, Metered, Refused int64
	// Shadow says that the rule or the customer's plan is in shadow: nothing was refused.
	Shadow bool
	// Correction says that the numbers change those of an earlier decision, whose time is At.
	Correction bool
	// Others says that the earlier decision was summed under the others; see Meter.
	Others bool
}

// Meter counts what customers use. A Meter is safe for concurrent use, and must not block.
type Meter interface {
	// Count counts a change. It reports whether it summed the change under the others, because too many customers
	// had one already. A later Correction of the change then has Others.
	Count(u Usage) (others bool)
}
