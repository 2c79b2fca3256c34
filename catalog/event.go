package catalog

// ObjectKind tells the rows of a state apart.
type ObjectKind uint8

// Kinds of objects. Frozen: history format v1.
const (
	ObjectCluster ObjectKind = 1 + iota
	ObjectDatabase
	ObjectTable
	ObjectPartition
	ObjectServer
	ObjectMember
	ObjectKeyValue
	ObjectCounter
	ObjectDropped
	ObjectRebalance
	ObjectImport
	ObjectClient
)

var objectNames = [...]string{
	"none", "cluster", "database", "table", "partition", "server", "member", "kv", "counter", "dropped", "rebalance", "import", "client",
}

// String returns the name used in JSON.
func (k ObjectKind) String() string {
	if int(k) < len(objectNames) {
		return objectNames[k]
	}
	return "object"
}

// Object is a row of a state: a pointer to one of this package's row types.
// Rows are immutable.
type Object interface{ Object() ObjectKind }

// Object implements Object.
func (*Cluster) Object() ObjectKind { return ObjectCluster }

// Object implements Object.
func (*Database) Object() ObjectKind { return ObjectDatabase }

// Object implements Object.
func (*Table) Object() ObjectKind { return ObjectTable }

// Object implements Object.
func (*Partition) Object() ObjectKind { return ObjectPartition }

// Object implements Object.
func (*Server) Object() ObjectKind { return ObjectServer }

// Object implements Object.
func (*Member) Object() ObjectKind { return ObjectMember }

// Object implements Object.
func (*KeyValue) Object() ObjectKind { return ObjectKeyValue }

// Object implements Object.
func (*Counter) Object() ObjectKind { return ObjectCounter }

// Object implements Object.
func (*DroppedObject) Object() ObjectKind { return ObjectDropped }

// Object implements Object.
func (*Rebalance) Object() ObjectKind { return ObjectRebalance }

// Object implements Object.
func (*Import) Object() ObjectKind { return ObjectImport }

// Object implements Object.
func (*Client) Object() ObjectKind { return ObjectClient }

// Change is one row before and after a command. Before is nil for a new row,
// After for a deleted one.
type Change struct{ Before, After Object }

// Kind returns the kind of the row.
func (c Change) Kind() ObjectKind {
	if c.After != nil {
		return c.After.Object()
	}
	return c.Before.Object()
}

// Event is everything one command changed. It is immutable; a command that
// changed nothing makes none.
type Event struct {
	Revision Revision
	Kind     Kind
	Wall     Millis
	Actor    string
	Changes  []Change
}
