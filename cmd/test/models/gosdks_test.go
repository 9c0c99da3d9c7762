package models

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	openaioption "github.com/openai/openai-go/v3/option"
	openairesponses "github.com/openai/openai-go/v3/responses"
)

// goClient is an HTTP client of one version of HTTP.
func goClient(t *testing.T, http2 bool) *http.Client {
	t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// A goCall is one call of an SDK in Go. It gives the text and the tokens in all.
type goCall func(ctx context.Context, client *http.Client, base, model string) (text string, usage int64, err error)

func openaiGo(client *http.Client, base string) openai.Client {
	return openai.NewClient(openaioption.WithBaseURL(base+"/v1"), openaioption.WithAPIKey("k"), openaioption.WithHTTPClient(client))
}

func anthropicGo(client *http.Client, base string) anthropic.Client {
	return anthropic.NewClient(anthropicoption.WithBaseURL(base), anthropicoption.WithAPIKey("k"), anthropicoption.WithHTTPClient(client))
}

func chatOf(model string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Say something.")}}
}

func messageOf(model string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{
		Model: model, MaxTokens: 1000,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("Say something."))},
	}
}

// goCalls are the calls of the SDKs in Go by name.
var goCalls = map[string]goCall{
	"openai-go-chat": func(ctx context.Context, client *http.Client, base, model string) (string, int64, error) {
		answer, err := new(openaiGo(client, base)).Chat.Completions.New(ctx, chatOf(model))
		if err != nil || len(answer.Choices) == 0 {
			return "", 0, err
		}
		return answer.Choices[0].Message.Content, answer.Usage.TotalTokens, nil
	},
	"openai-go-chat-stream": func(ctx context.Context, client *http.Client, base, model string) (string, int64, error) {
		request := chatOf(model)
		request.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := new(openaiGo(client, base)).Chat.Completions.NewStreaming(ctx, request)
		defer stream.Close()
		var text strings.Builder
		var usage int64
		for stream.Next() {
			chunk := stream.Current()
			usage = max(usage, chunk.Usage.TotalTokens)
			for _, choice := range chunk.Choices {
				text.WriteString(choice.Delta.Content)
			}
		}
		return text.String(), usage, stream.Err()
	},
	"openai-go-responses-stream": func(ctx context.Context, client *http.Client, base, model string) (string, int64, error) {
		stream := new(openaiGo(client, base)).Responses.NewStreaming(ctx, openairesponses.ResponseNewParams{
			Model: model, Input: openairesponses.ResponseNewParamsInputUnion{OfString: openai.String("Say something.")},
		})
		defer stream.Close()
		var text strings.Builder
		var usage int64
		for stream.Next() {
			event := stream.Current()
			usage = max(usage, event.Response.Usage.TotalTokens)
			if event.Type == "response.output_text.delta" {
				text.WriteString(event.Delta)
			}
		}
		return text.String(), usage, stream.Err()
	},
	"anthropic-go": func(ctx context.Context, client *http.Client, base, model string) (string, int64, error) {
		answer, err := new(anthropicGo(client, base)).Messages.New(ctx, messageOf(model))
		if err != nil || len(answer.Content) == 0 {
			return "", 0, err
		}
		return answer.Content[0].Text, anthropicTotal(answer.Usage), nil
	},
	"anthropic-go-stream": func(ctx context.Context, client *http.Client, base, model string) (string, int64, error) {
		stream := new(anthropicGo(client, base)).Messages.NewStreaming(ctx, messageOf(model))
		defer stream.Close()
		var message anthropic.Message
		var text strings.Builder
		for stream.Next() {
			event := stream.Current()
			if err := message.Accumulate(event); err != nil {
				return "", 0, err
			}
			if event.Type == "content_block_delta" {
				text.WriteString(event.Delta.Text)
			}
		}
		return text.String(), anthropicTotal(message.Usage), stream.Err()
	},
}

func anthropicTotal(u anthropic.Usage) int64 {
	return u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens + u.OutputTokens
}

// allWays are plain and with gzip, in pieces of 1, 37 and 65,536 bytes.
func allWays() []string {
	return []string{".plain.1", ".plain.37", ".plain.65536", ".gzip.1", ".gzip.37", ".gzip.65536"}
}

func someWays() []string { return []string{".plain.37", ".gzip.65536"} }

// runGo runs all calls of the SDKs in Go in some ways, with both versions of HTTP, and gives the outcomes by model.
func runGo(t *testing.T, base string, ways []string) map[string]outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var mu sync.Mutex
	var wait sync.WaitGroup
	found := map[string]outcome{}
	for version, client := range map[string]*http.Client{"1": goClient(t, false), "2": goClient(t, true)} {
		for name, call := range goCalls {
			for _, way := range ways {
				wait.Go(func() {
					one := outcome{Name: name, Model: name + "-http" + version + way}
					text, usage, err := call(ctx, client, base, one.Model)
					one.Text, one.Usage = &text, &usage
					if err != nil {
						one.Error = err.Error()
					}
					mu.Lock()
					defer mu.Unlock()
					found[one.Model] = one
				})
			}
		}
	}
	wait.Wait()
	return found
}

// TestGoSDKsReportTheUsage runs the SDKs in Go against the service alone.
func TestGoSDKsReportTheUsage(t *testing.T) {
	t.Parallel()
	_, server := Serve()
	defer server.Close()
	for _, one := range runGo(t, server.URL, someWays()) {
		complete(t, one.Name, one)
	}
}

// TestFailures: the SDKs report an answer that breaks off, and an error with its status and its words.
func TestFailures(t *testing.T) {
	t.Parallel()
	_, server := Serve()
	defer server.Close()
	client := goClient(t, false)
	_, _, err := goCalls["openai-go-chat-stream"](t.Context(), client, server.URL, "openai-go.gzip.37.broken")
	if err == nil || !strings.Contains(err.Error(), "unexpected EOF") {
		t.Errorf("a broken stream: %v", err)
	}
	_, _, err = goCalls["anthropic-go"](t.Context(), client, server.URL, "anthropic-go.plain.37.failed")
	var failed *anthropic.Error
	if !errors.As(err, &failed) || failed.StatusCode != http.StatusInternalServerError || !strings.Contains(err.Error(), "no capacity") {
		t.Errorf("a failed call: %v", err)
	}
}
