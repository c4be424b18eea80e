// Copyright The Atoll Authors.
// SPDX-License-Identifier: Apache-2.0

// Command operator is an operator over several regions, with typed clients of controller-runtime. A Database has a name that
// is unique over all regions, and a Secret that is the same in each of them.
//
// It reads the peers from peers.yaml and keeps its log in operations.db, in the working directory:
//
//	go -C examples/operator run . -kubeconfig host.kubeconfig
//
// Begin reading at Reconcile.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	mcbuilder "sigs.k8s.io/multicluster-runtime/pkg/builder"
	"sigs.k8s.io/multicluster-runtime/pkg/controller"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/atoll-dev/atoll/adapters/controllerruntime"
	"github.com/atoll-dev/atoll/adapters/multicluster"
	v1 "github.com/atoll-dev/atoll/examples/operator/v1"
	"github.com/atoll-dev/atoll/fanout"
	"github.com/atoll-dev/atoll/region"
	"github.com/atoll-dev/atoll/region/shard"
	"github.com/atoll-dev/atoll/wal"
)

// finalizer keeps a deleted Database until its Secret is removed from all regions.
const finalizer = "operator.example.com/secret"

// retry is how long a Database waits for the next attempt after a failure, and for a replica of the operator to take it over.
var retry = 15 * time.Second

// databases exist once: each other region has a guard of the name.
var databases = fanout.Kind{Resource: v1.GroupVersion.WithResource("databases"), Kind: "Database", Namespaced: true}

// operator reconciles the Databases of all regions.
type operator struct {
	mgr   mcmanager.Manager
	ops   *fanout.Coordinator
	shard region.Shard
}

// Reconcile handles one Database of one region, and reports the result in its condition Ready.
func (o *operator) Reconcile(ctx context.Context, r mcreconcile.Request) (result ctrl.Result, err error) {
	cl, err := o.mgr.GetCluster(ctx, r.ClusterName)
	if err != nil {
		return result, err
	}
	c, db := cl.GetClient(), &v1.Database{}
	if err := c.Get(ctx, r.NamespacedName, db); err != nil || db.IsGuard() {
		return result, client.IgnoreNotFound(err)
	}
	if !o.shard.Owns("Database/" + r.NamespacedName.String()) {
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	if !db.DeletionTimestamp.IsZero() {
		return result, o.remove(ctx, c, db)
	}
	ready := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Complete"}
	if err := o.settle(ctx, c, db, region.PeerName(r.ClusterName)); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "the Database is not ready", "retry", retry)
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, string(fanout.ReasonOf(err)), fanout.Message(err)
		result.RequeueAfter = retry
	}
	ready.ObservedGeneration = db.Generation
	if meta.SetStatusCondition(&db.Status.Conditions, ready) {
		err = c.Status().Update(ctx, db)
	}
	return result, err
}

// settle reserves the name of a Database in all regions, and gives each region its Secret.
func (o *operator) settle(ctx context.Context, c client.Client, db *v1.Database, peer region.PeerName) (err error) {
	if db.Spec.Fanout == nil {
		var op *fanout.Operation
		if op, err = o.ops.Adopt(ctx, peer, databases.GroupKind(), client.ObjectKeyFromObject(db)); err == nil {
			err = op.Into(db) // the adoption has changed the Database: updates of the cached object would conflict
		}
	}
	if err == nil && controllerutil.AddFinalizer(db, finalizer) {
		err = c.Update(ctx, db)
	}
	if err == nil {
		meta, data := metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Name}, map[string][]byte{"password": []byte(rand.Text())}
		_, err = o.ops.Agree(ctx, &corev1.Secret{ObjectMeta: meta, Data: data}, fanout.AddOptions{Target: peer}) // the first password wins
	}
	return err
}

// remove removes the Secret of a deleted Database from all regions. Then a sweep removes the Database and its guards.
func (o *operator) remove(ctx context.Context, c client.Client, db *v1.Database) (err error) {
	if controllerutil.RemoveFinalizer(db, finalizer) {
		_, err = o.ops.Remove(ctx, fanout.Secrets().GroupKind(), client.ObjectKeyFromObject(db), fanout.RemoveOptions{Unreachable: fanout.Forward})
		if err == nil || errors.Is(err, fanout.ErrNotFound) {
			err = c.Update(ctx, db)
		}
	}
	return err
}

// setUp adds the operator to a manager. Its replicas share the work by Leases in the cluster of the manager. The scheme of
// client-go has the types. After an error, do not start the manager.
func setUp(mgr mcmanager.Manager, d region.Directory, journal wal.Log, opts controller.Options) error {
	local := mgr.GetLocalManager()
	plane, err1 := region.APIFor(local.GetConfig())
	members, err2 := shard.New(plane, "default", "databases", shard.Options{})
	ops, err3 := fanout.New(d, journal, fanout.Options{Kinds: []fanout.Kind{databases, fanout.Secrets()}, Scheme: scheme.Scheme, Shard: members})
	return errors.Join(err1, err2, err3,
		local.Add(controllerruntime.Loop(members.Start)), local.Add(controllerruntime.Loop(ops.Start)),
		mcbuilder.ControllerManagedBy(mgr).For(&v1.Database{}, mcbuilder.WithPredicates(predicate.GenerationChangedPredicate{})).
			WithOptions(opts).Complete(&operator{mgr, ops, members}))
}

func main() {
	flag.Parse() // -kubeconfig is the cluster of the operator
	ctrl.SetLogger(klog.Background())
	source, err1 := region.FromFile("peers.yaml", region.Trust{})
	ring, err2 := region.NewRing(source, region.Options{})
	journal, err3 := wal.Open("operations.db", wal.Options{})
	provider, err4 := multicluster.New(ring, controllerruntime.Options{})
	mgr, err5 := mcmanager.New(ctrl.GetConfigOrDie(), provider, ctrl.Options{})
	err := errors.Join(err1, err2, err3, err4, err5, v1.AddToScheme(scheme.Scheme))
	if err == nil {
		err = errors.Join(setUp(mgr, ring, journal, controller.Options{MaxConcurrentReconciles: 16}), mgr.GetLocalManager().Add(controllerruntime.Loop(ring.Start)))
	}
	if err == nil {
		err = errors.Join(mgr.Start(ctrl.SetupSignalHandler()), journal.Close())
	}
	if err != nil {
		klog.Fatal(err)
	}
}
