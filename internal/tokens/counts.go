package tokens

import "github.com/headgate/headgate"

// Counts gives the tokens that the answer states for a Settle, and whether these are final. Without a final statement, counts are those
// that were stated so far. For a Settle without API, Counts.Total is the cost in units.
func (a *Answer) Counts(s *Settle) (c Counts, final bool) {
	if a.reader == nil || a.free {
		return c, false
	}
	var seen bool
	if s.API == NoAPI {
		c, seen = a.sum(s)
	} else {
		c, seen = a.tokens(s.API)
	}
	return c, seen && (a.complete || a.Ended())
}

// Cause says for one Settle why the answer states its cost, or why not. Call it after Close.
func (a *Answer) Cause(s *Settle) Cause {
	if _, final := a.Counts(s); final {
		return Stated
	}
	if a.cause == None || !a.concerns(s) {
		return None
	}
	if a.cause == Stated {
		return NoUsage
	}
	return a.cause
}

// concerns reports whether the path is a call that a Settle counts.
func (a *Answer) concerns(s *Settle) bool {
	switch s.API {
	case NoAPI:
		return true
	case Auto:
		return a.api != NoAPI
	default:
		return s.API.calls(a.path)
	}
}

// Model is the model that the answer or the path names; "" if neither does. The service writes it: escape it.
func (a *Answer) Model() string {
	if a.reader == nil {
		return ""
	}
	if text := a.scanner.Text(); len(text) > 0 {
		return string(text)
	}
	return modelOf(a.path)
}

// anything reports whether a number of any Settle was seen.
func (a *Answer) anything() bool {
	for i := range a.reader.plans {
		s := a.reader.plans[i].settle
		if s.API == NoAPI {
			if _, seen := a.sum(s); seen {
				return true
			}
		} else if _, seen := a.tokens(s.API); seen {
			return true
		}
	}
	return false
}

// sum gives the cost of a Settle without API.
func (a *Answer) sum(s *Settle) (c Counts, seen bool) {
	p := a.reader.plan(s)
	if p == nil {
		return c, false
	}
	var t total
	for i, index := range p.indices {
		var v int64
		var ok bool
		var w Weight
		if len(s.JSON) > 0 {
			v, ok = a.scanner.Value(int(index))
			w = s.JSON[i].Weight
		} else {
			v, ok = a.headers[index], a.seen&(1<<index) != 0
			w = s.Headers[i].Weight
		}
		if ok {
			seen = true
			t.add(v, w)
		}
	}
	c.Total = t.units(One * One) // millionths of a number times millionths of a unit
	return c, seen
}

// has reports whether a number of a role was seen.
func (a *Answer) has(api API, r role) bool {
	slot := a.reader.slots[api][r]
	if slot < 0 {
		return false
	}
	_, seen := a.scanner.Value(int(slot))
	return seen
}

// number gives the number of a role: of the body, or of a header if that is higher.
func (a *Answer) number(api API, r role) (v int64, seen bool) {
	if slot := a.reader.slots[api][r]; slot >= 0 {
		v, seen = a.scanner.Value(int(slot))
	}
	if first := a.reader.apiHeaders[api]; first >= 0 && r <= written {
		if i := first + int8(r); a.seen&(1<<i) != 0 {
			return max(v, (a.headers[i]+int64(One)-1)/int64(One)), true
		}
	}
	return v, seen
}

// tokens gives the tokens by kind, normalized.
func (a *Answer) tokens(api API) (c Counts, seen bool) {
	if api == Auto {
		if api = a.api; api == NoAPI {
			if api = a.detect(); api == NoAPI {
				return c, false
			}
		}
	}
	var n [roles]int64
	for r := range roles {
		v, ok := a.number(api, r)
		n[r] = v
		seen = seen || ok
	}
	return normalize(api, &n), seen
}

// normalize makes kinds that do not overlap.
func normalize(api API, n *[roles]int64) (c Counts) {
	c = Counts{Input: n[input], Cached: n[cached], Written: n[written], Output: n[output], Total: n[stated]}
	switch api {
	case OpenAI, Gemini:
		// Cached and written tokens are inside of the input.
		c.Input = add(c.Input, n[tools])
		c.Cached = min(c.Cached, c.Input)
		c.Written = min(c.Written, c.Input-c.Cached)
		c.Input -= c.Cached + c.Written
		c.Output = add(c.Output, n[thoughts])
		if parts := add(n[input], c.Output); api == OpenAI && c.Total > parts {
			c.Output = add(c.Output, c.Total-parts) // services of other models leave the tokens of reasoning out of the parts
		}
	case Cohere:
		if n[input] == 0 && n[output] == 0 {
			c.Input, c.Output = n[inputElse], n[outputElse]
		}
		c.Input = add(c.Input, add(n[tools], n[thoughts]))
	case NoAPI, Auto, Anthropic, Bedrock, Ollama:
	}
	return c
}

func add(a, b int64) int64 { return min(a+b, headgate.MaxUnits) }

// detect finds the API by the numbers that the answer states, for paths that no API has.
func (a *Answer) detect() API {
	if a.has(Anthropic, cached) || a.has(Anthropic, written) {
		return Anthropic
	}
	for _, api := range [...]API{OpenAI, Gemini, Ollama, Cohere} {
		if a.has(api, input) || a.has(api, output) || a.has(api, stated) {
			return api
		}
	}
	for _, api := range [...]API{Bedrock, Anthropic} {
		if _, seen := a.number(api, input); seen {
			return api
		}
	}
	return NoAPI
}
