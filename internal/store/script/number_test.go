package script

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	testserver "github.com/headgate/headgate/internal/testkit/redis"
)

// TestMuldivIsExact compares muldiv of lua/number.lua with math/big, at the bounds of its arguments
// and between them.
func TestMuldivIsExact(t *testing.T) {
	server := testserver.Start(t)
	text := luaNumber + `
local add, subtract, after, span_of, muldiv = numbers()
local all = {}
for i = 1, #ARGV, 3 do
  local q, r = muldiv(tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]))
  all[#all + 1] = string.format('%.0f %.0f', q, r)
end
return all`
	r := rand.New(rand.NewPCG(1, 2))
	var args, want []string
	for len(want) < 3000 {
		c := 1 + r.Int64N(1<<r.IntN(52))
		if r.IntN(4) == 0 {
			c = maxDivisor - r.Int64N(3)
		}
		a, b := r.Int64N(1<<r.IntN(54)), r.Int64N(1<<r.IntN(54))
		if r.IntN(3) == 0 {
			b = c - r.Int64N(min(c, 3))
		}
		q, rest := new(big.Int).QuoRem(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), big.NewInt(c), new(big.Int))
		if q.BitLen() > 53 {
			continue
		}
		args = append(args, fmt.Sprint(a), fmt.Sprint(b), fmt.Sprint(c))
		want = append(want, fmt.Sprint(q, " ", rest))
	}
	answer, err := server.Do(append([]string{"EVAL", text, "0"}, args...)...)
	got, _ := answer.([]any)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("got %d answers, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("muldiv(%s): got %s, want %s", strings.Join(args[3*i:3*i+3], ", "), got[i], want[i])
		}
	}
}
