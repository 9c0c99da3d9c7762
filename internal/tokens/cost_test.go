package tokens_test

import (
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/tokens"
)

// costTwin is the cost with numbers of any size.
func costTwin(w tokens.Weights, c *tokens.Counts) int64 {
	sum := new(big.Int)
	for _, x := range [...][2]int64{
		{c.Input, int64(w.Input)}, {c.Cached, int64(w.Cached)}, {c.Written, int64(w.Written)}, {c.Output, int64(w.Output)},
	} {
		if x[0] > 0 {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(x[0]), big.NewInt(x[1])))
		}
	}
	units, rest := new(big.Int).DivMod(sum, big.NewInt(int64(tokens.One)), new(big.Int))
	if rest.Sign() > 0 {
		units.Add(units, big.NewInt(1))
	}
	if units.Cmp(big.NewInt(headgate.MaxUnits)) > 0 {
		return headgate.MaxUnits
	}
	return units.Int64()
}

// TestCostRandom compares costs with those of big numbers.
func TestCostRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 1))
	count := func() int64 { return r.Int64N(1<<(1+r.IntN(54))) - int64(r.IntN(2)) }
	weight := func() tokens.Weight { return tokens.Weight(r.Int64N(1 << r.IntN(40))) }
	for range 20_000 {
		w := tokens.Weights{Input: weight(), Cached: weight(), Written: weight(), Output: weight()}
		c := tokens.Counts{Input: count(), Cached: count(), Written: count(), Output: count(), Total: count()}
		s := tokens.Settle{API: tokens.OpenAI, Weights: w}
		want := costTwin(w, &c)
		if w == (tokens.Weights{}) {
			want = max(costTwin(tokens.Weights{Input: tokens.One, Cached: tokens.One, Written: tokens.One, Output: tokens.One}, &c), c.Total)
		}
		if got := s.Cost(&c, ""); got != want {
			t.Fatalf("%+v of %+v: %d, want %d", c, w, got, want)
		}
		prices := tokens.Settle{API: tokens.OpenAI, Prices: []tokens.Price{{Model: "*", Weights: w}}}
		if got := prices.Cost(&c, "m"); got != costTwin(w, &c) {
			t.Fatalf("%+v by price %+v: %d, want %d", c, w, got, costTwin(w, &c))
		}
	}
}

// TestCosts has costs that a reader can check.
func TestCosts(t *testing.T) {
	for _, c := range []struct {
		name   string
		settle tokens.Settle
		counts tokens.Counts
		want   int64
	}{
		{"each token", tokens.Settle{API: tokens.OpenAI}, tokens.Counts{Input: 10, Cached: 5, Written: 1, Output: 4, Total: 20}, 20},
		{"at least the total", tokens.Settle{API: tokens.OpenAI}, tokens.Counts{Input: 10, Total: 30}, 30},
		{
			"weights",
			tokens.Settle{API: tokens.OpenAI, Weights: tokens.Weights{Input: tokens.One, Cached: tokens.One / 10, Output: 5 * tokens.One}},
			tokens.Counts{Input: 10, Cached: 11, Output: 2, Total: 1000},
			22,
		},
		{"a sum of its own", tokens.Settle{JSON: []tokens.Field{{}}}, tokens.Counts{Total: 7}, 7},
		{"too much", tokens.Settle{API: tokens.OpenAI}, tokens.Counts{Input: headgate.MaxUnits, Output: headgate.MaxUnits}, headgate.MaxUnits},
	} {
		if got := c.settle.Cost(&c.counts, "m"); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// TestPricesRandom compares the price of a model with that of an obvious search: regular expressions for globs.
func TestPricesRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(44, 2))
	word := func(letters string) string {
		var b strings.Builder
		for range r.IntN(6) {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	for range 3_000 {
		prices := []tokens.Price{{Model: "*", Weights: tokens.Weights{Input: tokens.One}}}
		for i := range r.IntN(6) {
			if glob := word("ab**-"); glob != "" {
				prices = append(prices, tokens.Price{Model: glob, Weights: tokens.Weights{Input: tokens.Weight(i+2) * tokens.One}})
			}
		}
		model, best := word("ab-"), 0
		for i, p := range prices {
			pattern := "^" + strings.ReplaceAll(regexp.QuoteMeta(p.Model), `\*`, ".*") + "$"
			exact, already := p.Model == model, prices[best].Model == model
			longer := regexp.MustCompile(pattern).MatchString(model) && len(p.Model) > len(prices[best].Model)
			if !already && (exact || longer) {
				best = i
			}
		}
		s := tokens.Settle{API: tokens.OpenAI, Prices: prices}
		got, want := s.Cost(&tokens.Counts{Input: 1}, model), int64(prices[best].Weights.Input/tokens.One)
		if got != want {
			t.Fatalf("%q among %+v costs %d, want %d", model, prices, got, want)
		}
	}
}

// TestWeights reads weights exactly, and refuses others.
func TestWeights(t *testing.T) {
	for text, want := range map[string]tokens.Weight{
		"0": 0, "1": tokens.One, "0.15": 150_000, "0.000001": 1, "3.75": 3_750_000, "1000000": 1_000_000 * tokens.One, "007": 7 * tokens.One,
	} {
		if got, err := tokens.ParseWeight(text); err != nil || got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", ".", "1.", ".5", "-1", "+1", "1e3", "0.0000001", "1000000.1", "10000000", "1,5", "0x1", "1 ", "NaN", "1.-2"} {
		if got, err := tokens.ParseWeight(text); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: %d, %v, want an error with the text", text, got, err)
		}
	}
	for _, w := range []tokens.Weight{0, 1, tokens.One, 150_000, 123_456_789} {
		if got, err := tokens.ParseWeight(w.String()); err != nil || got != w {
			t.Errorf("%d as text is %s, which reads as %d, %v", w, w, got, err)
		}
	}
}

// TestCheck refuses settles that cannot be used.
func TestCheck(t *testing.T) {
	one := []tokens.Field{{Name: "in", Paths: []string{"usage.in"}, Weight: tokens.One}}
	deep := strings.Repeat("a.", 8) + "a"
	for name, c := range map[string]struct {
		settle tokens.Settle
		want   string
	}{
		"an API":              {tokens.Settle{API: tokens.Gemini}, ""},
		"JSON":                {tokens.Settle{JSON: one}, ""},
		"headers":             {tokens.Settle{Headers: []tokens.Field{{Name: "X-Cost", Weight: 1}}}, ""},
		"prices":              {tokens.Settle{API: tokens.Auto, Prices: []tokens.Price{{Model: "*"}}}, ""},
		"nothing":             {tokens.Settle{}, "set one"},
		"two":                 {tokens.Settle{API: tokens.OpenAI, JSON: one}, "set one"},
		"an unknown API":      {tokens.Settle{API: 99}, "API 99"},
		"an unknown merge":    {tokens.Settle{JSON: one, Merge: 9}, "merge 9"},
		"no price of others":  {tokens.Settle{API: tokens.Auto, Prices: []tokens.Price{{Model: "gpt*"}}}, `no "*"`},
		"a price for no name": {tokens.Settle{API: tokens.Auto, Prices: []tokens.Price{{}, {Model: "*"}}}, "price 0"},
		"prices and weights":  {tokens.Settle{API: tokens.Auto, Weights: tokens.Weights{Input: 1}, Prices: []tokens.Price{{Model: "*"}}}, "both"},
		"weights of JSON":     {tokens.Settle{JSON: one, Weights: tokens.Weights{Input: 1}}, "need an API"},
		"a negative weight":   {tokens.Settle{API: tokens.Auto, Weights: tokens.Weights{Input: -1}}, "use 0 to"},
		"no path":             {tokens.Settle{JSON: []tokens.Field{{Name: "in", Weight: 1}}}, "no path"},
		"an empty name":       {tokens.Settle{JSON: []tokens.Field{{Name: "in", Paths: []string{"a..b"}, Weight: 1}}}, "empty name"},
		"a deep path":         {tokens.Settle{JSON: []tokens.Field{{Name: "in", Paths: []string{deep}, Weight: 1}}}, "9 names"},
		"a list at the top":   {tokens.Settle{JSON: []tokens.Field{{Name: "in", Paths: []string{"[].a"}, Weight: 1}}}, "leave [] out"},
		"no weight":           {tokens.Settle{JSON: []tokens.Field{{Name: "in", Paths: []string{"a"}}}}, "all weights are 0"},
		"too many headers":    {tokens.Settle{Headers: make([]tokens.Field, 13)}, "header"},
	} {
		err := c.settle.Check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
