// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aggregate shows many regions as one: a list and a watch over all of them, and writes that find their own region.
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
// addresses one of them, wherever a name is given, and [Options.Qualify] shows such names, which informers need then.
//
// # Lists
//
// Regions are asked in parallel and come one after the other, by provider and name; types come one after the other. Limit
// is that of the whole list. The first page pins the version of each region, and a continue token goes on at these: all
// pages together are one list. It is authenticated, bounded, and good for the same list only; anything else is 400. It is
// 410 once a region has left or has forgotten its version. [Options.Policy] says how many regions must answer the first
// page, each within [Options.Timeout]; one must list its objects whatever the policy, so an empty list means empty. [WithReport]
// and [Options.WarningHandler] report the regions that did not contribute, with every page, and the list names them in
// [IncompleteAnnotation]. A page after the first fails if its region does not answer, and can be asked for again.
// remainingItemCount is never set. A region that is frozen costs a list [Options.Answer]. Once its probes have failed
// ([Member.Health]), it is not asked and costs nothing, until it answers anything, or a minute passes without a probe.
//
// A region is read in pages of 500 objects, also if no limit is given. An answer has [Options.MaxAnswer] bytes at most, counted
// after decompression; a page that has more is read again with fewer objects. All answers that are held at one time have
// [Options.Budget]. [Reader.Pages] passes a list on page by page, so that it is never held whole.
//
// # Objects by name
//
// A plain name is looked for in all regions. It is reported as not found only if all of them answered that they do not have
// it: if one did not, the error is 503 and names that region. If the object is found and [Options.Policy] is met by fewer
// regions, [WithReport] names the others. As long as no region is known, everything is 503.
//
// # Watches
//
// Guaranteed, for a consumer that starts from a list or from nothing:
//   - Each event fits what was delivered before: no ADDED of what is there, no MODIFIED or DELETED of what is not.
//   - Events of one object come in the order of its history in its region. There is no order between regions.
//   - An interruption of one region is repaired inside, while the others flow: its watch begins again and it is listed, at
//     the version of the last event. If its history up to there is the one that was delivered, the watch goes on and no event
//     is left out. If it was compacted, or the region was restored from a backup, exactly the difference is delivered.
//   - A region that joins has its objects ADDED, one that leaves has them DELETED (unless [Options.Withhold]); one that
//     cannot be reached has nothing happen to its objects. A region that moves to another cluster is repaired.
//   - The events of a region that returns come at the latest when a probe finds it ([Member.Health]), so by default within
//     10 seconds; without probes, after the backoff of [Options.Retry].
//   - The resourceVersion of an event or bookmark covers what was delivered and nothing else, so a watch resumes from it.
//     If that cannot be done without a loss (a region left, or forgot), it is 410 and the consumer lists anew.
//   - sendInitialEvents: the bookmark that ends the initial events comes once [Options.Policy] is met and a region has told
//     the kind of the objects. It names the regions that are missing in [IncompleteAnnotation]. Every bookmark has a kind.
//   - A consumer that takes no event for [Options.Patience] loses the watch, and no event. What is held for it is one event
//     per region.
//
// To a region, a merged watch costs one watch and, each time that begins (after an interruption, and every half hour), a
// request for one object and a list in pages of 500.
//
// A DELETED that comes of a repair has the object's name, UID and labels, since nobody has the rest any more. A watch
// remembers UID, version, labels and a hash of each object: some 200 bytes, more with labels.
//
// # Writes
//
// They go to the object's own region: the one in its name, in its annotation, or of its resourceVersion, or else the only
// one that has an object of that name, for which all regions must answer. A create or apply of a new object must name a
// region if there are several. What is ambiguous is 409. Versions are turned back into the region's own in updates, patches
// and preconditions, and the annotation is never stored.
//
// # What is not guaranteed
//
//   - Bytes are counted as they come, not as the objects that they become, which take some ten times of that, and more if a
//     hostile region means to: 20 times of Options.MaxAnswer for each answer that is being decoded.
//   - Answers are counted for clients of [Regions] and region.APIFor, not for other clients of a Member.
//   - A version carries a stamp of the state that was delivered, so that a watch that resumes from it notices, with 410, that
//     a region was restored from a backup meanwhile and came to the same number by another way. The version of a list has none of
//     a region that did not fit into its share of the first page: between that page and the watch, nobody notices.
//   - The resourceVersion of a list, an event or a bookmark has some 30 bytes for each region and type, and a token at most
//     64 KiB: of some two thousand of them. Beyond that lists and watches fail. An informer keeps that version with each object
//     that an event brought.
//   - Only the first request to each region is made in parallel with those to others. What a page needs beyond its share of
//     a region is asked for region by region, and if that fails the page does, whatever the policy.
//   - resourceVersions are no numbers and cannot be compared. One object's differs from one event to the next, even if it
//     has not changed.
//   - ownerReferences and managedFields are those of the region, also where [Options.Map] changes groups.
//   - Errors of single regions are in [Outcome.Err], which may name peers and addresses. The texts of [Error], [PartialError]
//     and [Report.Warnings] do not.
package aggregate
