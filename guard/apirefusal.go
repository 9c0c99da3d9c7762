package guard

import (
	"github.com/headgate/headgate/guard/refusal"
	"github.com/headgate/headgate/internal/tokens"
)

// ModelAPI reports whether the rule has the preset of an API, whose clients read refusals in their own form.
func (r *Rule) ModelAPI() bool { return r.SettleBody != nil && r.SettleBody.API != tokens.NoAPI }

// Response is the body and the header fields of a refusal over HTTP: those of Exceed.Response, or the form of the API whose preset the rule
// has. path is that of the request. nil is the problem document.
func (r *Result) Response(path string) *refusal.Template {
	if t := r.Rule.Exceed.Response; t != nil || r.from == nil || !r.Rule.ModelAPI() {
		return t
	}
	return r.from.state.refusals[r.Rule.SettleBody.For(path)]
}

// The bodies of refusals, by what the clients of each API show of them. Clients of OpenAI's and of Anthropic's API read one form: the
// member message is for those that show it alone.
const (
	openAIRefusal = `{"type":"error","error":{"type":"{error_type}","message":"{detail}","param":null,"code":"rate_limit_exceeded"},` +
		`"message":"{detail}"}` + "\n"
	geminiRefusal  = `{"error":{"code":{status},"message":"{detail}","status":"RESOURCE_EXHAUSTED"}}` + "\n"
	ollamaRefusal  = `{"error":"{detail}"}` + "\n"
	messageRefusal = `{"message":"{detail}"}` + "\n"
)

// apiRefusals are the answers to refused requests, by API.
type apiRefusals [tokens.Cohere + 1]*refusal.Template

// newAPIRefusals makes the answers.
func newAPIRefusals() (all apiRefusals) {
	for api := range all {
		all[api] = apiRefusal(tokens.API(api))
	}
	return all
}

func apiRefusal(api tokens.API) *refusal.Template {
	r := refusal.Response{ContentType: "application/json", Body: openAIRefusal}
	switch api {
	case tokens.Gemini:
		r.Body = geminiRefusal
	case tokens.Ollama:
		r.Body = ollamaRefusal
	case tokens.Cohere:
		r.Body = messageRefusal
	case tokens.Bedrock:
		r.Body = messageRefusal
		r.Headers = []refusal.Header{{Name: "X-Amzn-Errortype", Value: "ThrottlingException"}} // The SDKs of AWS take the class from it.
	default:
	}
	t, _ := refusal.New(r) // The texts are constants, and a test makes each.
	return t
}
