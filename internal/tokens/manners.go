package tokens

// ErrorEvent appends the event with which a stream of the API ends in an error that its clients show. The event of OpenAI also serves
// Anthropic, the AI SDK and LangChain, and is that of Auto and NoAPI. Bedrock gets a frame of an exception.
func (a API) ErrorEvent(dst []byte, message string) []byte {
	switch a {
	case Gemini:
		dst = append(dst, `data: {"error":{"code":429,"message":`...)
		dst = appendJSON(dst, message)
		return append(dst, `,"status":"RESOURCE_EXHAUSTED"}}`+"\n\n"...)
	case Ollama:
		dst = append(dst, `{"error":`...)
		dst = appendJSON(dst, message)
		return append(dst, "}\n"...)
	case Cohere:
		dst = append(dst, "event: message-end\n"+`data: {"type":"message-end","delta":{"finish_reason":"ERROR","error":`...)
		dst = appendJSON(dst, message)
		return append(dst, "}}\n\n"...)
	case Bedrock:
		return appendException(dst, message)
	case NoAPI, Auto, OpenAI, Anthropic:
	}
	dst = append(dst, "event: error\n"+`data: {"type":"error","sequence_number":0,"code":"rate_limit_exceeded","message":`...)
	dst = appendJSON(dst, message)
	dst = append(dst, `,"param":null,"error":{"type":"rate_limit_error","message":`...)
	dst = appendJSON(dst, message)
	return append(dst, `,"code":"rate_limit_exceeded","param":null}}`+"\n\n"...)
}
