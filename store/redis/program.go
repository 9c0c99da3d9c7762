package redis

import (
	"context"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/internal/store/script"
)

// program is a script. A server knows the script by its SHA after the first run. The Lua type of
// rueidis is not used, because it loads a script for each pipeline, which costs a round trip.
type program struct{ script.Script }

func newProgram(s script.Script) program { return program{s} }

// call is one run of a program.
type call struct {
	keys, args []string
	reply      *int64 // receives the result of the call; nil drops the result
}

// run sends the calls in one pipeline for each node. A server that does not know the script refuses
// the call, so run sends that call again with the script's text. Servers lose scripts after a
// failover, a restart or SCRIPT FLUSH.
func (p *program) run(ctx context.Context, client rueidis.Client, calls []call) []rueidis.RedisResult {
	if len(calls) == 1 {
		return []rueidis.RedisResult{p.runOne(ctx, client, &calls[0])}
	}
	commands := make([]rueidis.Completed, len(calls))
	for i := range calls {
		commands[i] = p.bySHA(client, &calls[i])
	}
	results := client.DoMulti(ctx, commands...)
	for i := range results {
		if unknown(results[i]) {
			results[i] = client.Do(ctx, p.byText(client, &calls[i]))
		}
	}
	return results
}

func (p *program) runOne(ctx context.Context, client rueidis.Client, c *call) rueidis.RedisResult {
	result := client.Do(ctx, p.bySHA(client, c))
	if unknown(result) {
		result = client.Do(ctx, p.byText(client, c))
	}
	return result
}

func (p *program) bySHA(client rueidis.Client, c *call) rueidis.Completed {
	return client.B().Evalsha().Sha1(p.SHA).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
}

func (p *program) byText(client rueidis.Client, c *call) rueidis.Completed {
	return client.B().Eval().Script(p.Text).Numkeys(int64(len(c.keys))).Key(c.keys...).Arg(c.args...).Build()
}

// unknown reports whether the server does not know the script.
func unknown(result rueidis.RedisResult) bool {
	fault, ok := rueidis.IsRedisErr(result.Error())
	return ok && fault.IsNoScript()
}
