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
//   - Discovery has the types of all regions, mapped ones under their common group. A region that does not answer has the
//     types that it had last, for all callers, and the header Warning names it. The OpenAPI v3 document of a group and
//     version is that of the first region that has it.
//   - A SelfSubjectAccessReview is true if every region grants the right, or the region of a qualified name does. A
//     SelfSubjectRulesReview has the rules of every region, and is incomplete if a region has more. A SelfSubjectReview has
//     what all regions agree on. The answer is 503 if it depends on a region that does not answer.
//   - Each answer holds at most a page of each region in memory, and the next page of one region. A long answer is
//     compressed if the client accepts gzip; the regions are then asked for compressed answers too.
//   - No answer names a peer.
//
// # Several types together
//
// The group across.atoll.dev has resources that are several types: names RESOURCE.VERSION.GROUP, joined by commas. They can be
// listed and watched, also in one namespace, and have the guarantees of a list and a watch of one type. The resource
// catalog stands for the types of Options.Catalog.
//
//	kubectl --server='https://gateway/regions/*' get --raw /apis/across.atoll.dev/v1/namespaces/acme/couchdbs.v1.loodse,secrets.v1
//	kubectl --server='https://gateway/regions/*' get --raw '/apis/across.atoll.dev/v1/catalog?watch=true'
//
// A list is a v1 List, whose objects have an apiVersion and a kind, and are sorted by type. Each region decides about each
// type as the caller; a type that it refuses counts as not answered. There are no tables and no metadata-only answers of
// several types. Discovery does not have the group: a client that watches every type it discovers would see each object
// twice. Objects of different types may have the same name, which a single client-go informer confuses.
//
// # Kinds that the regions hold together
//
// With Options.Fanout, a create, update, patch or delete of a registered kind is an operation on all peers, whether the
// request is to one region or to all regions. Such kinds exist everywhere, as Accounts do, or once, as ServiceClusters
// do. Reads, subresources and the path /peers/ stay as they are.
//
//   - The regions decide first, as the caller: a dry run of the write in its own region, which also checks admission and
//     schema. If the kind exists everywhere, every region must allow the write: a create is a dry run in each region, and
//     for any other write the other regions are asked about the right. A 403 names its region, and a region that does not
//     answer is a 503. In both cases nothing is written.
//   - The content of an update or a patch is the result of the dry run. If the object changes before the operation is
//     committed, the answer is 409.
//   - A content that exists everywhere is computed at the home of the object, whichever region the request names. A
//     change of finalizers, owners and managers of fields is a write to the region of the request alone, and is refused
//     together with a change of the content. So is every change of an object that exists once: only a create and a delete
//     are operations, because its guards have no content.
//   - The fields of the Fanout, such as spec.fanout, its annotations and its finalizer, are refused unless they are as the
//     region has them.
//   - Deletes honor preconditions. Only the propagation policy Background is supported. Collections are not deleted, and
//     names are not generated.
//   - The answer has the object as the region has it after the commit. If the caller may not read it there, it has the
//     result of the dry run, without UID and resourceVersion.
//   - An Account whose namespace holds objects is not removed: 409 with the objects and their regions, and no deletion is
//     requested. A removal that is committed and waits, for example for a finalizer, is a 202.
//   - If the outcome is not known yet, the answer is 504 (Timeout). The request may be repeated as it is: the operation in
//     doubt is settled before another operation on the name begins, and the name, UID and revision admit one of them only.
//     So a repeated create ends in one object (201, or 409 AlreadyExists), an update in one revision (200, or 409), and a
//     delete in none (200, or 404).
//   - The parameter timeout ends an operation that is not committed yet.
//   - Every region means every region that the router knows now. Bodies are JSON or YAML.
//
// # Not guaranteed
//
//   - resourceVersions are not numbers.
//   - The answer to a delete is a Status, and never the object that is being deleted.
//   - The version, health checks and OpenAPI v2 are those of one region: the first that is not known to be unreachable.
//     OpenAPI documents of regions that do not answer are missing. Regions before Kubernetes 1.30, which lack aggregated
//     discovery of version v2, count as not answering discovery.
//   - Rules of a SelfSubjectRulesReview name the groups of the regions, not common ones.
//   - A write in protobuf, which typed clients send for built-in types, is converted. One with fields that this release does
//     not know gets 415, because they would be lost.
//   - Answers are JSON. A client that accepts only protobuf, CBOR or tables of v1beta1 gets 406.
package apiserver
