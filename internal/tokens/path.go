package tokens

import "strings"

// calls reports whether a path is a call of the API that states usage. Prefixes are free, since gateways add their own.
func (a API) calls(path string) bool {
	switch a {
	case OpenAI:
		return hasSuffix(path, "/completions", "/responses", "/embeddings", "/images/generations", "/images/edits",
			"/responses/compact", "/audio/transcriptions")
	case Anthropic:
		return hasSuffix(path, "/messages", ":rawPredict", ":streamRawPredict") && !strings.Contains(path, "/threads/")
	case Gemini:
		return hasSuffix(path, ":generateContent", ":streamGenerateContent", ":embedContent", ":batchEmbedContents")
	case Bedrock:
		return strings.Contains(path, "/model/") &&
			hasSuffix(path, "/converse", "/converse-stream", "/invoke", "/invoke-with-response-stream")
	case Ollama:
		return hasSuffix(path, "/api/chat", "/api/generate", "/api/embed")
	case Cohere:
		return hasSuffix(path, "/v2/chat", "/v2/embed", "/v2/rerank", "/v1/chat", "/v1/embed", "/v1/rerank")
	case NoAPI, Auto:
	}
	return false
}

func hasSuffix(path string, suffixes ...string) bool {
	for _, s := range suffixes {
		if strings.HasSuffix(path, s) {
			return true
		}
	}
	return false
}

// apiOf gives the API of a path; NoAPI if no API has it.
func apiOf(path string) API {
	for a := OpenAI; a <= Cohere; a++ {
		if a.calls(path) {
			return a
		}
	}
	return NoAPI
}

// modelOf gives the model that a path names, as those of Gemini, Bedrock and Azure do; "" for others.
func modelOf(path string) string {
	if i := strings.LastIndex(path, "/model/"); i >= 0 && Bedrock.calls(path) {
		model, end := path[i+len("/model/"):], strings.LastIndexByte(path, '/')-i-len("/model/")
		if end > 0 {
			return model[:end]
		}
	}
	if _, rest, ok := strings.Cut(path, "/deployments/"); ok && OpenAI.calls(path) {
		deployment, _, _ := strings.Cut(rest, "/")
		return deployment
	}
	i := strings.LastIndex(path, "/models/")
	if i < 0 {
		return ""
	}
	model, method, ok := strings.Cut(path[i+len("/models/"):], ":")
	if !ok || strings.ContainsAny(model, "/") || strings.ContainsAny(method, "/:") {
		return ""
	}
	return model
}

// For gives the API of requests for a path: that of the Settle, or with Auto that of the path; NoAPI if no API has it.
func (s *Settle) For(path string) API {
	if s.API == Auto {
		return apiOf(path)
	}
	return s.API
}
