// Package meter counts what customers use of their quotas, and delivers the counts for bills: units admitted, metered and
// refused, for each customer, quota and minute.
//
// A Meter adds up decisions in memory. Every second it appends the differences to a journal on disk (package journal), from which
// each Output delivers at its own pace, at least once: NewCloudEvents posts batches to an endpoint, NewLines writes files. A
// receiver drops records with an id that it knows, and then the records of a minute add up to what was decided.
//
// Guard calls a Meter, if guard.Config has one, for each decision of a rule with a quota. Corrections, such as units that a
// cancelled request returns, have the minute of the decision that they correct.
package meter
