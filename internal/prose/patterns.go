package prose

import "regexp"

// pattern is a phrase that texts must not have.
type pattern struct {
	name string
	find *regexp.Regexp
	// instead says what to write.
	instead string
	// bad is a text that the pattern must find, and good is a text that it must not find.
	// A test checks both.
	bad, good string
}

// expression compiles a pattern that ignores case.
func expression(text string) *regexp.Regexp { return regexp.MustCompile(`(?i)` + text) }

// allPatterns returns the patterns: personal pronouns for programs, archaic negations, clauses
// as subjects, and paraphrases of technical terms.
func allPatterns() []pattern {
	return []pattern{
		{
			"a pronoun for a program", expression(`\b(he|him|his|himself|she)\b`),
			"name it: the caller, the client, the operator", "He is refused.", "The caller is refused.",
		},
		{
			"whom", expression(`\bwho(m|se?ver|ever)\b`),
			"name the caller or the client", "a client whom a rule names", "a client that a rule names",
		},
		{
			"nobody", expression(`\b(nobody|somebody|everybody else)\b`),
			"say the caller, no instance, no client", "nobody waits", "no client waits",
		},
		{
			"who as a subject",
			regexp.MustCompile(`(^|[.:;] )(Who|who) (is|has|asks|waits|comes|floods|needs|takes|wants|was)\b[^?.]*(\.|$)`),
			"name it: a refused request, a client that waits", "Who is refused waits.", "A refused client waits. Who waits?",
		},
		{
			"what as a subject",
			regexp.MustCompile(`(^|[.:;] )What (is|was|are) [^?.]*\b(is|are|was|has|goes|stays|counts)\b[^?.]*(\.|$)`),
			"name it: the units that were taken", "What is lent comes back and is counted.", "Lent capacity comes back.",
		},
		{
			"nor", expression(`\bnor (does|do|is|are|can|has|have|may|will|did|was)\b`),
			"use a second sentence with not", "nor does the proxy", "and the proxy does not",
		},
		{
			"an archaic negation", expression(`\b(need|know|take|want|count|see|reach|use)s? (it|them|him|that|this) not\b`),
			"use does not", "clients that need it not", "clients that do not need it",
		},
		{
			"none after of which", expression(`\bof (which|whom|these|those) none\b`),
			"use none of them", "three tries, of which none passed", "none of the three tries passed",
		},
		{
			"so are", expression(`(^|[.,;:] )so (are|is|do|does|has|have) (the|a|an|its|their|all|both|every)\b`),
			"use also", "Keys are bounded; so are the values.", "Keys are bounded. The values are bounded too.",
		},
		{
			"the time was up", expression(`\btime (is|was) up\b`),
			"use timed out", "its time was up", "the call timed out",
		},
		{
			"is away", expression(`\b(is|are|was|were|be) away\b`),
			"use unreachable", "while the store is away", "while the store is unreachable",
		},
		{
			"there is room", expression(`\bthere (is|was|were) (no |not )?room\b`),
			"use has capacity, or is full", "there is no room for more", "the queue is full",
		},
		{
			"a farm or a river", expression(`\b(heeds?|heeded|farms?|rivers?)\b`),
			"use a word of the field", "it heeds the answer", "it backs off after the answer",
		},
	}
}
