package script

import (
	"crypto/sha1" //nolint:gosec // because Redis names scripts by their SHA-1, which needs no security
	_ "embed"
	"encoding/hex"
	"strings"
)

// The source files of the scripts, besides those of algorithms. In a script, each file comes before the files that use it.
var (
	//go:embed lua/begin.lua
	luaBegin string
	//go:embed lua/env.lua
	luaEnv string
	//go:embed lua/read.lua
	luaRead string
	//go:embed lua/number.lua
	luaNumber string
	//go:embed lua/state.lua
	luaState string
	//go:embed lua/group.lua
	luaGroup string
	//go:embed lua/decide.lua
	luaDecide string
	//go:embed lua/give_back.lua
	luaGiveBack string
	//go:embed lua/forget.lua
	luaForget string
	//go:embed lua/in_flight.lua
	luaInFlight string
)

// Script is a Lua script. A server that has run a script knows it by its SHA. Call EVALSHA with SHA,
// and after the error NOSCRIPT, call EVAL with Text.
type Script struct {
	Text string
	SHA  string
}

// Decide gives the script that decides a Batch. Call Decide once and keep the result.
//
// Each call of the script makes its functions again, at 0.1 µs each. Therefore the script has one
// outer function, library, which makes the others. The most common decisions do not call library.
func Decide() Script { return decide(luaBegin, luaRead) }

func decide(begin, read string) Script {
	return assemble(begin, read,
		"local function library(...)", luaAlgorithms(), "local env = surroundings(...)", luaGroup,
		"return env, decide_one, decide_group\nend", luaDecide)
}

// GiveBack gives the script for ReturnCall and ReturnLastCall. Call GiveBack once and keep the result.
func GiveBack() Script { return assemble(luaBegin, luaAlgorithms(), luaGiveBack) }

// Forget gives the script for ForgetCall. Call Forget once and keep the result.
func Forget() Script { return assemble(luaBegin, luaState, luaForget) }

func assemble(pieces ...string) Script {
	return named(strings.Join(pieces, "\n"))
}

func named(text string) Script {
	sum := sha1.Sum([]byte(text)) //nolint:gosec // because Redis names scripts by their SHA-1
	return Script{Text: text, SHA: hex.EncodeToString(sum[:])}
}
