//! Every diagnostic, with its code. Codes are stable: a retired one is not used again.
//!
//! Nothing but data, and no dependency: the test of `docs/diagnostics.md` includes this file.

/// Who finds the mistake, and so how far the finding reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A form that the attribute gives no meaning to; there is nothing to get around.
    Rule,
    /// Read off the tokens of the function: an alias, a helper or a macro hides it. The net stands behind.
    Lint,
    /// A type or a lifetime: it holds for aliases, generics and helpers alike.
    Type,
}

/// One diagnostic.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the test of docs/diagnostics.md reads all of it")]
pub(crate) struct Entry {
    /// `G001` and so on.
    pub(crate) code: &'static str,
    /// What it is about: the heading of its section.
    pub(crate) title: &'static str,
    /// Who finds it.
    pub(crate) kind: Kind,
    /// What catches the mistake where this does not; empty where nothing can get past.
    pub(crate) net: &'static str,
}

macro_rules! catalogue {
    ($($code:ident $name:ident $kind:ident $title:literal $net:expr;)*) => {
        /// The name of a diagnostic in the code of the macro.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(dead_code, reason = "diagnostics that rustc finds are listed, and not constructed")]
        pub(crate) enum Code {
            $(#[doc = $title] $name,)*
        }

        impl Code {
            /// Its entry.
            pub(crate) const fn entry(self) -> Entry {
                match self {
                    $(Self::$name => Entry {
                        code: stringify!($code),
                        title: $title,
                        kind: Kind::$kind,
                        net: $net,
                    },)*
                }
            }
        }

        /// All of them, in order.
        #[allow(dead_code, reason = "the test of docs/diagnostics.md reads it")]
        pub(crate) const ALL: &[Code] = &[$(Code::$name),*];
    };
}

/// What the types say where a lint was evaded.
const NO_READS: &str = "the types, since `Tensor` has no such method, conversion or operator (rustc's E0599, E0608, E0369, E0277)";
const TRACE: &str = "the trace of warm-up and recording, and `audit_every(n)`, which runs the body again: both see it only where operations or results differ";
const KEYED: &str =
    "host live-ins are part of the key: the value stays right, and what one pays is a recording per value";

catalogue! {
    G001 UnknownArgument Rule "An argument that the attribute does not have" "";
    G002 UnknownAttribute Lint "An attribute that is spelt almost like one of ours" "rustc: an attribute that nobody consumes is an error";
    G003 RepeatedAttribute Rule "An attribute given twice, or two that exclude each other" "";
    G004 MisplacedAttribute Rule "An attribute where it has no meaning" "";
    G005 AttributeArguments Rule "Arguments that cannot be read" "";
    G006 CapturableReader Rule "A region that reads device data and says that it can be captured" "";
    G007 Helper Rule "`helper` on what is more than a helper" "";
    G008 Unparsable Rule "An item that is not Rust yet" "";
    G009 MovePosition Rule "`early` or `late` where there is nothing to move, or nothing to move over" "";

    G010 ReturnType Rule "A result that is not spelt `Result<…>`" "";
    G011 ReturnedReference Rule "A result that borrows" "";
    G012 Qualifier Rule "`async`, `const`, `unsafe`, `extern` and variadic functions" "";
    G013 Receiver Rule "A receiver other than `&self`" "";
    G014 TraitMethod Rule "A trait's method as a graph" "";
    G015 ImplTrait Rule "`impl Trait` in the signature" "";
    G016 Pattern Rule "A parameter that is a pattern" "";
    G017 ConditionalParameter Rule "`#[cfg]` on a parameter" "";
    G018 TooManyParameters Rule "More parameters than a key can hold" "";

    G020 BareScalar Rule "A host value that a recording would freeze" "";
    G021 ByValue Rule "A tensor or a struct passed by value" "";
    G022 HostCollection Lint "Slices, strings and collections of the host, captured from outside" "the types, by G054, for whatever has another name";
    G023 FloatKey Lint "A float as a key" "the types, by G056, for an alias; `max_recordings` for a float made into an integer";
    G024 KeyMisuse Rule "`#[key]` on a reference or on device data" "";
    G025 HostParameter Rule "`#[host]` on something else than `&Tensor` or `&Scalar`" "";
    G026 MutParameter Rule "A `&mut` parameter" "";
    G027 Handle Lint "A step, a runtime, a stream or another handle as a parameter" "the types, since no handle implements `LiveIn` (G050, G055)";

    G030 DimsEntry Rule "An entry of `#[dims]` that is not a dimension" "";
    G031 DimsTarget Rule "`#[dims]` on something else than a tensor" "";
    G032 DimsContradiction Lint "Dimensions that contradict the body" "shapes are checked by every operation when it is warmed up: `Error::Shape`";
    G033 DimsSymbol Lint "A symbol of `#[dims]` that the body uses as a value" "rustc where there is no such constant; else sizes are unified at the call: `Error::DimsDisagree`";
    G034 SizeAsNumber Lint "The size of a dimension as a number" "rustc, since `Dim` is another type than `usize` (E0308, E0277, E0605)";

    G040 HostRead Lint "Reading a tensor on the host" NO_READS;
    G041 FormatsTensor Lint "Printing the elements of a tensor" NO_READS;
    G042 ConvertsTensor Lint "Converting a tensor into a host value" NO_READS;
    G043 Operator Lint "Operators and comparisons on tensors" NO_READS;
    G044 Indexing Lint "Indexing, slicing and masking a tensor" NO_READS;
    G045 DeviceControlFlow Lint "Branching, looping and matching on device data" NO_READS;
    G046 DataDependentShape Lint "An operation whose result's size depends on values" "the types, since these operations live on `Eager` alone and return `Ragged`, which is no live-in (G051)";
    G047 MutatesTensor Lint "Changing a tensor in place" "the types, since operations that write take `State` only (rustc's E0308, E0599)";
    G048 Synchronises Lint "Waiting for the device inside a segment" "the types, since what can wait is no live-in (G050), and `Error::CapabilityInSegment` in every mode";

    G050 EntersSegment Type "A value that cannot be part of a segment's key" "";
    G051 EagerEntersSegment Lint "A value of eager code that enters a segment without `#[key]`" KEYED;
    G052 LeavesSegment Type "A value that a replay cannot give back" "";
    G053 GraphResult Type "A result that a replay cannot give back" "";
    G054 GraphParams Type "A parameter that is not a struct of parameters" "";
    G055 GraphInput Type "A value of a step that a graph cannot take" "";
    G056 GraphKey Type "A type that cannot be a key" "";
    G057 UserError Type "An error type that cannot hold ours" "";
    G058 ParamField Type "A host field of a struct of parameters" "";
    G059 ConfigField Type "A `#[config]` field that cannot be compared by value" "";

    G060 NeedsPiecewise Type "A function with boundaries called as plain code" "";
    G061 PiecewiseTarget Rule "`#[piecewise]` on something else than a call" "";
    G062 PiecewiseArgument Rule "An argument of a `#[piecewise]` call that does more than name a value" "";
    G063 BoundaryPosition Rule "A boundary in the middle of an expression" "";
    G064 NestedBoundary Rule "A boundary in a closure, an async block or another region" "";
    G065 DriverOperation Lint "A device operation where no segment and no region is" "`Error::OutsideSegment`, in every mode, on the first call";
    G066 Recursion Lint "A function with boundaries that calls itself" "a function that reaches itself through another one overflows the stack, or ends where host values end it";
    G067 Guard Type "A guard held across a boundary" "";
    G068 PiecewisePlain Type "`#[piecewise]` on a call of a plain function" "";
    G069 MoveBlocked Lint "A region that cannot be moved, for what it needs or may change" "rustc (E0425, E0382, E0502 and the like) for a variable that was missed; for memory reached under two names, the word of who wrote `early` or `late`";

    G070 Prints Lint "Printing and logging in a segment" "nothing, since the results are right: the line appears once";
    G071 UnknownMacro Lint "A macro that may bind a name behind its segment" "rustc, which does not find the name (E0425); for a name that is there already, an error when the segment is first run";
    G072 InputOutput Lint "Files, network and processes in a segment" TRACE;
    G073 Clock Lint "Clocks in a segment" TRACE;
    G074 Randomness Lint "Host randomness in a segment" TRACE;
    G075 Threads Lint "Threads, locks and waiting in a segment" TRACE;
    G076 Environment Lint "The environment of the process in a segment" TRACE;
    G077 Ambient Lint "Statics, cells and atomics in a segment" TRACE;
    G078 WritesThrough Lint "Writing through a reference in a segment" "rustc's E0594 and E0596: graph functions have no `&mut`";
    G079 Await Rule "`await` in a graph function" "";

    G080 MoveClosure Lint "A `move` closure over a variable that changes" "rustc's borrow checker for most; else wrong values, which `audit_every(n)` shows";
    G081 ShadowedCapture Lint "A closure whose captures are shadowed" "";
    G082 ConfusingName Lint "A name that means two things to the reader" "";
    G083 ChangingClosure Lint "A closure that changes a variable, in a segment and in host code" "rustc's borrow checker (E0502)";

    G090 DeriveTarget Rule "A type that the derive cannot work on" "";
    G091 FieldRole Rule "A field whose attributes do not fit it" "";
    G092 LoadIncomplete Rule "A field of which nothing says how it is loaded" "";
    G093 LoadContradiction Rule "A loading attribute that contradicts the field" "";

    G100 OutlivesStep Type "A tensor used after its step" "";
    G101 OverlappingSteps Type "Two steps at once" "tensors of two runtimes have one type: `Error::DifferentRuntimes`, at the first operation";
    G102 HiddenRead Type "Reading device data behind an alias, a generic or a helper" "";
    G103 NotState Type "Writing to what is not a `State`" "";
    G104 MissingLifetime Type "`E0106: missing lifetime specifier`: a tensor without the lifetime of its step" "";
}
