// The calls: each takes the base address of an API and the name of a model, and gives the text of the answer and the tokens that the
// SDK reports for its user, in all. Usage is undefined if the SDK reports none. Meanwhile `seen` gets each piece of a stream's text.
import OpenAI from 'openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { Ollama } from 'ollama';
import { CohereClientV2 } from 'cohere-ai';
import { Mistral } from '@mistralai/mistralai';
import { BedrockRuntimeClient, ConverseCommand, ConverseStreamCommand } from '@aws-sdk/client-bedrock-runtime';
import { createOpenAI } from '@ai-sdk/openai';
import { createAnthropic } from '@ai-sdk/anthropic';
import { generateText, streamText } from 'ai';
import { ChatOpenAI } from '@langchain/openai';

const messages = [{ role: 'user', content: 'Say something.' }];
const apiKey = 'k';

const openai = base => new OpenAI({ baseURL: base + '/v1', apiKey });
const anthropic = base => new Anthropic({ baseURL: base, apiKey });
const genai = base => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: base } });
const cohere = base => new CohereClientV2({ environment: base, token: apiKey });
const mistral = base => new Mistral({ serverURL: base, apiKey });
const bedrock = base =>
  new BedrockRuntimeClient({
    endpoint: base, region: 'eu-central-1', maxAttempts: 1, credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
  });
const langchain = (base, model) => new ChatOpenAI({ model, apiKey, configuration: { baseURL: base + '/v1' } });

// join reads a stream. Take gives the text of one of its events.
async function join(stream, seen, take) {
  let text = '';
  for await (const event of stream) {
    const piece = take(event) ?? '';
    text += piece;
    if (piece !== '') seen(piece);
  }
  return text;
}

const anthropicTotal = u => u.input_tokens + u.cache_read_input_tokens + u.cache_creation_input_tokens + u.output_tokens;

export const calls = {
  'openai-chat': async (base, model) => {
    const answer = await openai(base).chat.completions.create({ model, messages });
    return { text: answer.choices[0].message.content, usage: answer.usage.total_tokens };
  },
  'openai-chat-stream': async (base, model, seen) => {
    const stream = await openai(base).chat.completions.create({ model, messages, stream: true, stream_options: { include_usage: true } });
    let usage;
    const text = await join(stream, seen, chunk => {
      usage = chunk.usage?.total_tokens ?? usage;
      return chunk.choices[0]?.delta.content;
    });
    return { text, usage };
  },
  'openai-chat-silent': async (base, model, seen) => {
    let usage;
    const stream = await openai(base).chat.completions.create({ model, messages, stream: true });
    const text = await join(stream, seen, chunk => {
      usage = chunk.usage?.total_tokens ?? usage;
      return chunk.choices[0]?.delta.content;
    });
    return { text, usage };
  },
  'openai-responses': async (base, model) => {
    const answer = await openai(base).responses.create({ model, input: 'Say something.' });
    return { text: answer.output_text, usage: answer.usage.total_tokens };
  },
  'openai-responses-stream': async (base, model, seen) => {
    let usage;
    const stream = await openai(base).responses.create({ model, input: 'Say something.', stream: true });
    const text = await join(stream, seen, event => {
      usage = event.response?.usage?.total_tokens ?? usage;
      return event.type === 'response.output_text.delta' ? event.delta : '';
    });
    return { text, usage };
  },
  'openai-embeddings': async (base, model) => {
    const answer = await openai(base).embeddings.create({ model, input: 'Say something.' });
    return { usage: answer.usage.total_tokens };
  },
  'anthropic': async (base, model) => {
    const answer = await anthropic(base).messages.create({ model, messages, max_tokens: 1000 });
    return { text: answer.content[0].text, usage: anthropicTotal(answer.usage) };
  },
  'anthropic-stream': async (base, model, seen) => {
    const stream = anthropic(base).messages.stream({ model, messages, max_tokens: 1000 });
    const text = await join(stream, seen, event => event.delta?.text);
    return { text, usage: anthropicTotal((await stream.finalMessage()).usage) };
  },
  'genai': async (base, model) => {
    const answer = await genai(base).models.generateContent({ model, contents: 'Say something.' });
    return { text: answer.text, usage: answer.usageMetadata.totalTokenCount };
  },
  'genai-stream': async (base, model, seen) => {
    let usage;
    const stream = await genai(base).models.generateContentStream({ model, contents: 'Say something.' });
    const text = await join(stream, seen, chunk => {
      usage = chunk.usageMetadata?.totalTokenCount ?? usage;
      return chunk.text;
    });
    return { text, usage };
  },
  // No SDK of npm asks for the array: fetch does.
  'genai-array': async (base, model) => {
    const answer = await fetch(`${base}/v1beta/models/${model}:streamGenerateContent`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ contents: [{ parts: [{ text: 'Say something.' }] }] }),
    });
    const chunks = await answer.json();
    return { text: chunks.map(c => c.candidates[0].content.parts[0].text).join(''), usage: chunks.at(-1).usageMetadata.totalTokenCount };
  },
  'bedrock': async (base, modelId) => {
    const answer = await bedrock(base).send(new ConverseCommand({ modelId, messages: [{ role: 'user', content: [{ text: 'Say something.' }] }] }));
    return { text: answer.output.message.content[0].text, usage: answer.usage.totalTokens };
  },
  'bedrock-stream': async (base, modelId, seen) => {
    let usage;
    const answer = await bedrock(base).send(new ConverseStreamCommand({ modelId, messages: [{ role: 'user', content: [{ text: 'Say something.' }] }] }));
    const text = await join(answer.stream, seen, event => {
      usage = event.metadata?.usage.totalTokens ?? usage;
      return event.contentBlockDelta?.delta.text;
    });
    return { text, usage };
  },
  'ollama': async (base, model) => {
    const answer = await new Ollama({ host: base }).chat({ model, messages });
    return { text: answer.message.content, usage: answer.prompt_eval_count + answer.eval_count };
  },
  'ollama-stream': async (base, model, seen) => {
    let usage;
    const text = await join(await new Ollama({ host: base }).chat({ model, messages, stream: true }), seen, part => {
      if (part.done) usage = part.prompt_eval_count + part.eval_count;
      return part.message.content;
    });
    return { text, usage };
  },
  'cohere': async (base, model) => {
    const answer = await cohere(base).chat({ model, messages });
    return { text: answer.message.content[0].text, usage: answer.usage.billedUnits.inputTokens + answer.usage.billedUnits.outputTokens };
  },
  'cohere-stream': async (base, model, seen) => {
    let usage;
    const text = await join(await cohere(base).chatStream({ model, messages }), seen, event => {
      const billed = event.type === 'message-end' ? event.delta.usage?.billedUnits : undefined;
      if (billed) usage = billed.inputTokens + billed.outputTokens;
      return event.type === 'content-delta' ? event.delta.message.content.text : '';
    });
    return { text, usage };
  },
  'mistral': async (base, model) => {
    const answer = await mistral(base).chat.complete({ model, messages });
    return { text: answer.choices[0].message.content, usage: answer.usage.totalTokens };
  },
  'mistral-stream': async (base, model, seen) => {
    let usage;
    const text = await join(await mistral(base).chat.stream({ model, messages }), seen, event => {
      usage = event.data.usage?.totalTokens ?? usage;
      return event.data.choices[0]?.delta.content;
    });
    return { text, usage };
  },
  'ai-openai': async (base, model) => {
    const answer = await generateText({ model: createOpenAI({ baseURL: base + '/v1', apiKey }).chat(model), messages });
    return { text: answer.text, usage: answer.usage.totalTokens };
  },
  'ai-openai-stream': (base, model, seen) => aiStream(createOpenAI({ baseURL: base + '/v1', apiKey }).chat(model), seen),
  'ai-responses-stream': (base, model, seen) => aiStream(createOpenAI({ baseURL: base + '/v1', apiKey })(model), seen),
  'ai-anthropic-stream': (base, model, seen) => aiStream(createAnthropic({ baseURL: base + '/v1', apiKey })(model), seen),
  'langchain': async (base, model) => {
    const answer = await langchain(base, model).invoke('Say something.');
    return { text: answer.content, usage: answer.usage_metadata.total_tokens };
  },
  'langchain-stream': async (base, model, seen) => {
    let usage;
    const text = await join(await langchain(base, model).stream('Say something.'), seen, chunk => {
      usage = chunk.usage_metadata?.total_tokens ?? usage;
      return chunk.content;
    });
    return { text, usage };
  },
};

// aiStream throws the error of a stream, which the SDK gives to onError alone.
async function aiStream(model, seen) {
  let failure;
  const answer = streamText({ model, messages, onError: ({ error }) => { failure = error; } });
  const text = await join(answer.textStream, seen, piece => piece);
  if (failure) throw failure;
  return { text, usage: (await answer.usage).totalTokens };
}

// packages gives the packages of a call.
export function packages(name) {
  const known = {
    openai: 'openai', anthropic: '@anthropic-ai/sdk', genai: '@google/genai', bedrock: '@aws-sdk/client-bedrock-runtime', ollama: 'ollama',
    cohere: 'cohere-ai', mistral: '@mistralai/mistralai', ai: 'ai', langchain: '@langchain/openai',
  };
  const [first, second] = name.split('-');
  return first === 'ai' ? ['ai', second === 'anthropic' ? '@ai-sdk/anthropic' : '@ai-sdk/openai'] : [known[first]];
}
