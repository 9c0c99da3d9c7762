#!/bin/bash
# Product: npm package @grpc/proto-loader 0.8.1 with protobufjs 7.5.4.
# Guess:   Fields have the same names whether a file or its descriptors are loaded:
#          pageSize for page_size, as keepCase is false.
# Happens: loadSync gives pageSize. loadFileDescriptorSetFromBuffer and its sibling for
#          objects give page_size, also with keepCase: false and a json_name. A field
#          with the other name is dropped without an error, so the service gets 0.
# Follows: A program that loads descriptors (server reflection, buf) writes the names
#          of the file, and tests one field with an underscore.
set -eu
want='file: pageSize arrives, page_size is dropped; descriptors: pageSize is dropped, page_size arrives'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
echo '{"private":true,"type":"module"}' >package.json
npm install --silent --ignore-scripts --no-audit --no-fund @grpc/proto-loader@0.8.1 protobufjs@7.5.4
cat >list.proto <<'PROTO'
syntax = "proto3";
package a;
message List { int32 page_size = 1; }
service Lists { rpc Get(List) returns (List); }
PROTO
cat >run.js <<'JS'
import loader from '@grpc/proto-loader'

const options = { keepCase: false }
// What protoc writes for list.proto.
const set = { file: [{
  name: 'list.proto', package: 'a', syntax: 'proto3',
  messageType: [{ name: 'List', field: [{ name: 'page_size', jsonName: 'pageSize', number: 1, label: 'LABEL_OPTIONAL', type: 'TYPE_INT32' }] }],
  service: [{ name: 'Lists', method: [{ name: 'Get', inputType: '.a.List', outputType: '.a.List' }] }],
}] }
const write = definition => message => definition['a.Lists'].Get.requestSerialize(message).length > 0 ? 'arrives' : 'is dropped'
const say = (name, fate) => `${name}: pageSize ${fate({ pageSize: 7 })}, page_size ${fate({ page_size: 7 })}`
console.log([
  say('file', write(loader.loadSync('list.proto', options))),
  say('descriptors', write(loader.loadFileDescriptorSetFromObject(set, options))),
].join('; '))
JS
echo "version: @grpc/proto-loader 0.8.1, protobufjs 7.5.4, Node $(node -v)"
got=$(node run.js)
[ "$got" = "$want" ] || { echo "CHANGED: $got, expected $want"; exit 1; }
echo "behaviour: $got"
