// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver serves many regions over HTTP as one API server, to kubectl, informers and other clients.
//
//	single, err := proxy.New(routes, authenticate, proxy.Options{})
//	...
//	handler, err := apiserver.New(routes, single, apiserver.Options{Keys: keyring})
//
// The addresses /regions/*/ and /clusters/*/ stand for all regions. There objects have names NAME@REGION, such as
// orders@eu-west-1.loodse. All other addresses are those of package proxy: /regions/REGION/ is one region.
//
//	kubectl --server='https://gateway/regions/*' get pods -A
//	kubectl --server='https://gateway/regions/*' delete pod web-0@eu-west-1.loodse
//
// # Guaranteed
//
//   - Requests are sent to the regions as the caller. A region decides what the caller may do in it.
//   - Lists, watches and reads of one object are those of package aggregate, over Options.Keys. A list without some of the
//     regions is asked for by the request, see aggregate.PolicyOf. The header Warning names the missing regions.
//   - Create, update, patch, server-side apply and delete, also of a subresource, are sent to the object's own region. The
//     name, the annotation aggregate.RegionAnnotation or the resourceVersion say which region that is. A create must name a
//     region if there are several. If the region is not certain, the answer is 409 and says how to name it, and nothing is
//     written.
//   - A write is sent once. If its answer is lost, the caller's answer is an error, and the write may have been carried out.
//   - Streams (logs, exec, attach, port-forward, proxy) of an object NAME@REGION are passed to its region.
//   - Lists, watches and reads of one object have the form that the header Accept asks for: objects, metadata
//     (PartialObjectMetadata), or tables (Table) with the columns of the regions and a column Region.
//   - Each answer holds at most a page of each region in memory, and the next page of one region. A long answer is
//     compressed if the client accepts gzip; the regions are then asked for compressed answers too.
//   - No answer names a peer.
//
// # Not guaranteed
//
//   - resourceVersions are not numbers.
//   - The answer to a delete is a Status, and never the object that is being deleted.
//   - Discovery and OpenAPI are those of one region: the first that is not known to be unreachable.
//   - Answers are JSON. A client that accepts only protobuf, CBOR or tables of v1beta1 gets 406.
package apiserver
