package tokens

import (
	"slices"

	"github.com/headgate/headgate/internal/usage"
)

// role is what a number of an API counts.
type role uint8

const (
	input      role = iota // tokens of the request
	output                 // tokens of the answer
	cached                 // tokens of the request that were read from a cache
	written                // tokens of the request that were written to a cache
	thoughts               // tokens of reasoning that output leaves out
	tools                  // tokens of the results of tools that input leaves out
	stated                 // the total
	inputElse              // tokens of the request, if input and output are not stated
	outputElse             // tokens of the answer, likewise
	roles                  // the number of roles
)

// place says where an API states a number.
type place struct {
	role  role
	paths []string
}

// places lists where an API states its numbers.
func places(a API) []place {
	switch a {
	case OpenAI:
		return []place{
			{input, []string{"usage.prompt_tokens", "usage.input_tokens", "response.usage.input_tokens"}},
			{output, []string{"usage.completion_tokens", "usage.output_tokens", "response.usage.output_tokens"}},
			{cached, []string{
				"usage.prompt_tokens_details.cached_tokens", "usage.input_tokens_details.cached_tokens",
				"response.usage.input_tokens_details.cached_tokens",
			}},
			{written, []string{
				"usage.prompt_tokens_details.cache_write_tokens", "usage.input_tokens_details.cache_write_tokens",
				"response.usage.input_tokens_details.cache_write_tokens",
			}},
			{stated, []string{"usage.total_tokens", "response.usage.total_tokens"}},
		}
	case Anthropic:
		return anthropicPlaces()
	case Gemini:
		return []place{
			{input, []string{"usageMetadata.promptTokenCount"}},
			{output, []string{"usageMetadata.candidatesTokenCount"}},
			{cached, []string{"usageMetadata.cachedContentTokenCount"}},
			{thoughts, []string{"usageMetadata.thoughtsTokenCount"}},
			{tools, []string{"usageMetadata.toolUsePromptTokenCount"}},
			{stated, []string{"usageMetadata.totalTokenCount"}},
		}
	case Bedrock:
		return bedrockPlaces()
	case Ollama:
		return []place{{input, []string{"prompt_eval_count"}}, {output, []string{"eval_count"}}}
	case Cohere:
		return coherePlaces()
	case NoAPI, Auto:
	}
	return nil
}

func anthropicPlaces() []place {
	return []place{
		{input, []string{"usage.input_tokens", "message.usage.input_tokens"}},
		{output, []string{"usage.output_tokens", "message.usage.output_tokens"}},
		{cached, []string{"usage.cache_read_input_tokens", "message.usage.cache_read_input_tokens"}},
		{written, []string{"usage.cache_creation_input_tokens", "message.usage.cache_creation_input_tokens"}},
	}
}

// bedrockPlaces has those of Converse, of the metrics of InvokeModelWithResponseStream, and of the models of InvokeModel.
func bedrockPlaces() []place {
	const metrics = "amazon-bedrock-invocationMetrics."
	return []place{
		{input, []string{
			"usage.inputTokens", "metadata.usage.inputTokens", metrics + "inputTokenCount",
			"usage.input_tokens", "message.usage.input_tokens", "prompt_token_count", "inputTextTokenCount",
		}},
		{output, []string{
			"usage.outputTokens", "metadata.usage.outputTokens", metrics + "outputTokenCount",
			"usage.output_tokens", "message.usage.output_tokens", "generation_token_count", "results.[].tokenCount",
		}},
		{cached, []string{
			"usage.cacheReadInputTokens", "metadata.usage.cacheReadInputTokens", metrics + "cacheReadInputTokenCount",
			"usage.cache_read_input_tokens", "message.usage.cache_read_input_tokens",
		}},
		{written, []string{
			"usage.cacheWriteInputTokens", "metadata.usage.cacheWriteInputTokens", metrics + "cacheWriteInputTokenCount",
			"usage.cache_creation_input_tokens", "message.usage.cache_creation_input_tokens",
		}},
		{stated, []string{"usage.totalTokens", "metadata.usage.totalTokens"}},
	}
}

// coherePlaces has billed tokens, and the tokens of the model where none are billed. A search unit and an image count as a token.
func coherePlaces() []place {
	const billed, delta, meta = "usage.billed_units.", "delta.usage.billed_units.", "meta.billed_units."
	return []place{
		{input, []string{billed + "input_tokens", delta + "input_tokens", meta + "input_tokens", "response." + meta + "input_tokens"}},
		{output, []string{billed + "output_tokens", delta + "output_tokens", meta + "output_tokens", "response." + meta + "output_tokens"}},
		{tools, []string{meta + "search_units", billed + "search_units", delta + "search_units"}},
		{thoughts, []string{meta + "images"}},
		{inputElse, []string{"usage.tokens.input_tokens", "delta.usage.tokens.input_tokens"}},
		{outputElse, []string{"usage.tokens.output_tokens", "delta.usage.tokens.output_tokens"}},
	}
}

// modelField reads the name of the model.
func modelField() usage.Field {
	return usage.Field{Kind: usage.Text, Paths: []string{"model", "response.model", "message.model", "modelVersion"}}
}

// endField finds the last event of a stream.
func endField() usage.Field {
	return usage.Field{Kind: usage.Word, Paths: []string{"type", "done"}, Words: []string{
		"message_stop", "response.completed", "response.incomplete", "response.failed", "message-end", "image_generation.completed",
		"image_edit.completed", "true",
	}}
}

// textField counts the text that clients see.
func textField(apis []API) usage.Field {
	f := usage.Field{Kind: usage.Length}
	for _, a := range apis {
		for _, path := range textPaths(a) {
			if !slices.Contains(f.Paths, path) {
				f.Paths = append(f.Paths, path)
			}
		}
	}
	return f
}

func textPaths(a API) []string {
	switch a {
	case OpenAI:
		return []string{
			"choices.[].delta.content", "choices.[].delta.reasoning_content", "choices.[].delta.reasoning", "choices.[].delta.refusal",
			"choices.[].delta.tool_calls.[].function.arguments", "choices.[].text", "choices.[].message.content", "delta",
			"output.[].content.[].text",
		}
	case Anthropic:
		return []string{"delta.text", "delta.thinking", "delta.partial_json", "content.[].text"}
	case Gemini:
		return []string{"candidates.[].content.parts.[].text"}
	case Bedrock:
		return []string{
			"delta.text", "delta.reasoningContent.text", "delta.toolUse.input", "output.message.content.[].text", "delta.thinking",
			"delta.partial_json", "content.[].text",
		}
	case Ollama:
		return []string{"message.content", "message.thinking", "response"}
	case Cohere:
		return []string{
			"delta.message.content.text", "delta.message.tool_plan",
			"delta.message.tool_calls.function.arguments", "message.content.[].text",
		}
	case NoAPI, Auto:
	}
	return nil
}

// headersOf gives the names of the headers with the numbers of an API, for the roles input, output, cached and written.
func headersOf(a API) []string {
	if a != Bedrock {
		return nil
	}
	const prefix = "X-Amzn-Bedrock-"
	return []string{
		prefix + "Input-Token-Count", prefix + "Output-Token-Count",
		prefix + "Cache-Read-Input-Token-Count", prefix + "Cache-Write-Input-Token-Count",
	}
}
