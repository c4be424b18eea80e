// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aggregate presents many regions as one API server: a list and a watch over all of them, and writes that are
// routed to the object's own region.
//
//	regions, err := aggregate.Regions(routes, router.Caller(token), nil)
//	...
//	api, err := aggregate.New(regions, aggregate.Options{Map: aggregate.ByProvider("loodse")})
//	...
//	// CouchDB.eu-west-1.loodse and CouchDB.eu-east-1.loodse as CouchDB.loodse:
//	couchdbs := schema.GroupVersionResource{Group: "loodse", Version: "v1", Resource: "couchdbs"}
//	list, err := api.Dynamic().Resource(couchdbs).Namespace("acme").List(ctx, metav1.ListOptions{Limit: 500})
//	informer := cache.NewSharedIndexInformer(api.Reader("acme", couchdbs), &unstructured.Unstructured{}, 0, nil)
//
// An object's region is in its annotation [RegionAnnotation]. Regions may have objects of the same name: NAME@REGION
// addresses one of them, wherever a name is accepted. With [Options.Qualify] all answers have such names; an
// informer needs them if regions have objects of the same name.
//
// # Lists
//
// Regions are read in parallel and listed one after the other, by provider and name; types come one after the
// other. Limit applies to the whole list. The first page pins the version of each region, and a continue token
// continues at these versions: all pages together are one list. A token is authenticated, bounded, and valid for
// the same list only; any other token gets 400. A token gets 410 once a region has left or no longer has its
// version.
//
// All regions must answer the first page, each within [Options.Timeout]; else the list is a 503 with Retry-After that
// names the missing regions. [WithPolicy] lets one request do with fewer regions. Whatever the
// policy, at least one region must list its objects: a list is never empty only because no region answered.
// [WithReport] and [Options.WarningHandler] report the regions that did not contribute, with every page, and the
// list names them in [IncompleteAnnotation]. A page after the first fails if its region does not answer, and can be
// requested again. remainingItemCount is never set.
//
// A frozen region accepts requests and does not answer. It delays a list by [Options.Answer]. Once the region's probes
// have failed ([Member.Health]), lists skip it until it answers any request, or a minute passes without a probe.
//
// A region is read in pages, even without a limit: of 500 objects, or as JSON of about 4 MiB if the budget has them
// free. An answer has at most [Options.MaxAnswer] bytes, counted after decompression; a page above that limit is read
// again with fewer objects. All answers held at one time share [Options.Budget].
//
// # JSON
//
// [Reader.ListJSON] and [Reader.WatchJSON] pass objects on as JSON, for servers. They copy each object from the region's
// answer and replace only its name, resourceVersion, region annotation and, with [Options.Map], its apiVersion. So they
// cost little more than a copy of the answer ([Member.REST]). A list holds a page of each region, and the next page of one
// region. An [Encoding] asks for whole objects, their metadata, or a table with the columns of all regions and a column
// Region. An answer that is not valid JSON or not an answer of an API server fails its region.
//
// # Objects by name
//
// A plain name is looked up in all regions. It is reported as not found only if all regions answered that they do
// not have it; if a region did not answer, the error is 503 and names that region. If the object is found, and
// [WithPolicy] does not require all regions, [WithReport] names those that did not answer. As long as no region
// is known, every request gets 503.
//
// # Watches
//
// Guaranteed, for a consumer that starts from a list or from nothing:
//   - Each event fits the delivered ones: no ADDED of a known object, no MODIFIED or DELETED of an unknown one.
//   - Events of one object come in the order of its history in its region. There is no order between regions.
//   - An interruption of one region is repaired without the consumer, while the other regions continue: the API
//     starts the region's watch again and lists the region at the version of the last event. If the region's
//     history up to there is the delivered one, the watch continues and no event is skipped. If that version was
//     compacted, or the region was restored from a backup, exactly the difference is delivered.
//   - A region that joins has its objects ADDED, one that leaves has them DELETED (unless [Options.Withhold]); an
//     unreachable region causes no events. A region that moves to another cluster is repaired.
//   - The events of a region that recovers come at the latest when a probe succeeds ([Member.Health]), so by
//     default within 10 seconds; without probes, after the backoff of [Options.Retry].
//   - The resourceVersion of an event or bookmark covers exactly the delivered events, so a watch resumes from it, also
//     at another process that has the same key in [Options.Keys].
//     If the watch cannot resume without a loss (a region left, or no longer has its version), it gets 410 and the
//     consumer lists again.
//   - sendInitialEvents: the bookmark that ends the initial events is sent once every region of the Set has delivered its
//     objects, or does not serve the type. Until then the events of the regions that answer flow. With the policy
//     [RequireDelivered] it is sent once each region has delivered or failed, and no region is missing that has delivered
//     before. Every bookmark has a kind.
//   - If a consumer receives no event for [Options.Patience], the watch ends, and no event is lost. At most one
//     event per region is held for the consumer.
//
// A merged watch costs a region one watch and, at each start (after an interruption, and every half hour), a
// request for one object and a list in pages of 500.
//
// A DELETED that a repair delivers has only the object's name, UID and labels, since the rest is no longer known. A
// watch holds UID, version, labels and a hash of each object: about 200 bytes, more with labels.
//
// # Shared watches
//
// With [Options.Sharing], the watches as JSON that have the same [Options.Identity], selectors and form follow one cache of
// each region, so that a hundred informers of one caller cost a region one watch and one list. The guarantees of watches
// hold, and:
//   - When a watch begins, each region is asked for one object with the credentials of its request. So the region decides at
//     that moment whether the caller may read the objects. Watches of one identity that begin at the same time share this
//     request.
//   - The initial events have every write that preceded the request.
//   - After a right was revoked, no event arrives later than [SharingOptions.Recheck].
//   - A watch that is resumed needs no list if the cache remembers its version: it remembers 1,024 messages (8 MiB), and
//     is kept for [SharingOptions.Linger] after its last watch.
//   - A consumer that falls behind further, or whose cache has no room ([SharingOptions.Bytes]), watches the region by
//     itself. No watch waits for the consumer of another one.
//
// If a new watch needs a later state than the cache has, and the region's events do not arrive within 100 milliseconds, the
// cache lists the region again. The watches that follow it then get the difference in place of single events.
//
// # Writes
//
// A write is sent to the object's own region. The request may name this region in the object's name, annotation or
// resourceVersion. Otherwise, exactly one region must have an object with this name; to find this region, the API
// needs an answer from all regions. A create or apply of a new object must name a region if there are several. An
// ambiguous write gets 409. Updates, patches and preconditions are sent with the region's own version, and the
// annotation is never stored.
//
// # Not guaranteed
//
//   - Bytes are counted as they are received, not as decoded objects, which take about ten times as much. A hostile
//     region can cause more: 20 times Options.MaxAnswer for each answer that is being decoded.
//   - Answers are counted for clients of [Regions] and region.APIFor, not for other clients of a Member.
//   - A version carries a stamp of the delivered state. If a region was restored from a backup and reached the same
//     number by another history, a watch that resumes from such a version gets 410. The version of a list has no
//     stamp for a region that did not fit into its share of the first page: a restore between that page and the watch
//     is not detected.
//   - The resourceVersion of a list, an event or a bookmark has about 30 bytes for each region and type, and a token
//     at most 64 KiB, which is about two thousand of them. Beyond that lists and watches fail. An informer stores
//     that version with each object that an event delivered.
//   - In a list with a limit, and in Reader.ListJSON, only the first request to each region runs in parallel with the
//     requests to other regions. If a page needs more than its share of a region, the rest is read region by region,
//     and if that fails the page fails, whatever the policy.
//   - A region checks the right to read when a watch of it begins. A watch that is not shared notices a revoked right up
//     to 45 minutes later.
//   - resourceVersions are not numbers and cannot be compared. The resourceVersion of one object differs from one
//     event to the next, even if the object has not changed.
//   - ownerReferences and managedFields are those of the region, even if [Options.Map] changes groups.
//   - Errors of single regions are in [Outcome.Err], which may name peers and addresses. The texts of [Error],
//     [PartialError] and [Report.Warnings] do not.
package aggregate
