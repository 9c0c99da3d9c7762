package models

import "net/http"

// chunk is one answer of generateContent. Each chunk of a stream states the usage so far. Tokens of thoughts are beside those of the
// candidates, and written is no kind of this API.
func geminiChunk(c *call, text string, complete bool) object {
	prompt, output, thoughts := c.usage.Input+c.usage.Cached, c.usage.Output, c.usage.Reasoning
	candidate := object{"index": 0, "content": object{"role": "model", "parts": array{object{"text": text}}}}
	if complete {
		candidate["finishReason"] = "STOP"
	} else {
		output = 1
	}
	return object{
		"candidates": array{candidate}, "modelVersion": c.way.Model, "responseId": "1",
		"usageMetadata": object{
			"promptTokenCount": prompt, "cachedContentTokenCount": c.usage.Cached, "candidatesTokenCount": output,
			"thoughtsTokenCount": thoughts, "totalTokenCount": prompt + output + thoughts,
			"promptTokensDetails": array{object{"modality": "TEXT", "tokenCount": prompt}},
		},
	}
}

func gemini(c *call) bool { return c.json(http.StatusOK, geminiChunk(c, c.way.text(), true)) }

// geminiStream is a stream of events with alt=sse, whose lines end with CR LF, and else one JSON array.
func geminiStream(c *call) bool {
	all := c.way.texts()
	if c.r.URL.Query().Get("alt") != "sse" {
		chunks := make(array, len(all))
		for n, text := range all {
			chunks[n] = geminiChunk(c, text, n == len(all)-1)
		}
		return c.json(http.StatusOK, chunks)
	}
	o := c.sse()
	for n, text := range all {
		if !o.event([]byte("data: " + string(encode(geminiChunk(c, text, n == len(all)-1))) + "\r\n\r\n")) {
			return false
		}
	}
	o.end()
	return true
}
