package script

import (
	_ "embed"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// shebang allows a script on Redis 7 to use keys of several slots. Older servers refuse the script.
const shebang = "#!lua flags=allow-cross-slot-keys\n"

var (
	//go:embed lua/across.lua
	luaAcross string
	//go:embed lua/look.lua
	luaLook string
)

// DecideAcross gives the script that decides a Batch on one node of a Redis Cluster, with keys in any
// slots of the node. The keys are the last arguments (ArgsAcross). The script reads all states before
// it writes any, so a call with the answer APART has counted nothing. Call DecideAcross once and keep
// the result.
func DecideAcross() Script {
	s := decide(luaAcross+"\n"+luaBegin, luaLook)
	return named(shebang + s.Text)
}

// FitsAcross reports whether DecideAcross can decide a policy. DecideAcross does not support logs that
// may have a list, because the script would find a moved list after it has written other states.
func FitsAcross(p *Plan) bool { return !p.needsList() }

// ArgsAcross gives the arguments of a call of DecideAcross, which has no keys.
func (b *Batch) ArgsAcross(now headgate.Instant, slack time.Duration) []string {
	args := b.Args(now, slack)
	return append(args, b.Keys()...)
}

// Apart decodes the error of a call of DecideAcross that has counted nothing, because the node could
// not read a state. place is the place of that state, or nil if it is unknown. ok is false for any
// other error.
func (b *Batch) Apart(text string) (place *Place, why string, ok bool) {
	rest, ok := strings.CutPrefix(text, "APART ")
	if !ok {
		return nil, "", false
	}
	number, why, _ := strings.Cut(rest, " ")
	if i, err := strconv.Atoi(number); err == nil && i >= 1 && i <= len(b.states.list) {
		place = &b.states.list[i-1].place
	}
	return place, why, true
}
