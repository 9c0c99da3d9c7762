package redis

import (
	"context"
	"crypto/sha1" //nolint:gosec // because Redis names scripts so; nothing is kept secret by it
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/rueidis"
)

// The pieces of the scripts; each comes before those that use it.
var (
	//go:embed lua/span.lua
	luaSpan string
	//go:embed lua/bucket.lua
	luaBucket string
	//go:embed lua/log.lua
	luaLog string
	//go:embed lua/decide.lua
	luaDecide string
	//go:embed lua/give_back.lua
	luaGiveBack string
	//go:embed lua/forget.lua
	luaForget string
)

// script is a Lua program that the server knows by its digest once it has run it.
// rueidis' own Lua loads the script anew for each pipeline, which is a round trip more.
type script struct {
	text string
	sha  string
}

func newScript(pieces ...string) script {
	text := strings.Join(pieces, "\n")
	sum := sha1.Sum([]byte(text)) //nolint:gosec // because Redis names scripts so
	return script{text: text, sha: hex.EncodeToString(sum[:])}
}

// call is one run of a script.
type call struct {
	keys, args []string
}

// run sends the calls in one pipeline. A server that does not know the script has
// not run it, so sending it again with its text runs it once.
func (s *script) run(ctx context.Context, client rueidis.Client, calls []call) []rueidis.RedisResult {
	if len(calls) == 1 {
		return []rueidis.RedisResult{s.runOne(ctx, client, &calls[0])}
	}
	commands := make([]rueidis.Completed, len(calls))
	for i := range calls {
		commands[i] = s.bySHA(client, &calls[i])
	}
	results := client.DoMulti(ctx, commands...)
	for i := range results {
		if unknown(results[i]) {
			results[i] = client.Do(ctx, s.byText(client, &calls[i]))
		}
	}
	return results
}

func (s *script) runOne(ctx context.Context, client rueidis.Client, c *call) rueidis.RedisResult {
	result := client.Do(ctx, s.bySHA(client, c))
	if unknown(result) {
		result = client.Do(ctx, s.byText(client, c))
	}
	return result
}

func (s *script) bySHA(client rueidis.Client, c *call) rueidis.Completed {
	return client.B().Evalsha().Sha1(s.sha).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
}

func (s *script) byText(client rueidis.Client, c *call) rueidis.Completed {
	return client.B().Eval().Script(s.text).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
}

// unknown reports whether the server does not know the script.
func unknown(result rueidis.RedisResult) bool {
	fault, ok := rueidis.IsRedisErr(result.Error())
	return ok && fault.IsNoScript()
}
