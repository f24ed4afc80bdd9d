//! Every diagnostic, with its code. Codes are stable: the code of a retired diagnostic is not reused.
//!
//! This file contains only data and has no dependencies, because the test of `docs/diagnostics.md` includes
//! it.

/// The mechanism that finds the mistake, which determines how far it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A form that has no meaning to the attribute; it cannot be circumvented.
    Rule,
    /// A check of the function's tokens, which an alias, a helper or a macro can circumvent; [`Entry::net`]
    /// states what catches the mistake then.
    Lint,
    /// A type or a lifetime; it holds even through aliases, generics and helpers.
    Type,
}

/// One diagnostic.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "the test of docs/diagnostics.md reads all of it")]
pub(crate) struct Entry {
    /// `G001` and so on.
    pub(crate) code: &'static str,
    /// The heading of its section.
    pub(crate) title: &'static str,
    /// The mechanism that finds it.
    pub(crate) kind: Kind,
    /// A clause about what happens if the check is circumvented; empty if it cannot be.
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

/// The types catch reads that circumvent a lint.
const NO_READS: &str = "the types reject it, since `Tensor` has no such method, conversion or operator (rustc's E0599, E0608, E0369, E0277)";
const TRACE: &str = "the trace of warm-up and recording, and `audit_every(n)`, which runs the body again, detect it only if operations or results differ";
const KEYED: &str =
    "host live-ins are part of the key, so results remain correct at the cost of one recording per value";

catalogue! {
    G001 UnknownArgument Rule "An argument that the attribute does not have" "";
    G002 UnknownAttribute Lint "A misspelt attribute" "rustc rejects an attribute that no macro consumes";
    G003 RepeatedAttribute Rule "An attribute given twice, or two that exclude each other" "";
    G004 MisplacedAttribute Rule "An attribute where it has no meaning" "";
    G005 AttributeArguments Rule "Arguments that cannot be read" "";
    G006 CapturableReader Lint "A region that reads device data but declares that it can be captured" "`Capturable`, the capability of such a region, has no methods that read, and is not the `&Eager` that helpers take";
    G007 Helper Rule "`helper` on a function that is more than a helper" "";
    G008 Unparsable Rule "An item that does not parse" "";
    G009 MovePosition Rule "`early` or `late` where there is nothing to move, or nothing to move over" "";

    G010 ReturnType Rule "A return type that is not written `Result<…>`" "";
    G011 ReturnedReference Rule "A result that borrows" "";
    G012 Qualifier Rule "`async`, `const`, `unsafe`, `extern`, variadic and `#[target_feature]` functions" "";
    G013 Receiver Rule "A receiver other than `&self`" "";
    G014 TraitMethod Rule "A trait method as a graph" "";
    G015 ImplTrait Rule "`impl Trait` in the signature" "";
    G016 Pattern Rule "A parameter that is a pattern" "";
    G017 ConditionalParameter Rule "`#[cfg]` on a parameter" "";
    G018 TooManyParameters Rule "More parameters than a key can hold" "";
    G019 LoneMethod Lint "A method as a graph, in an `impl` without the attribute" "rustc rejects the items of its graph there, if the file cannot be read and the function names neither `self` nor `Self`";

    G020 BareScalar Rule "A host value that a recording would freeze" "";
    G021 ByValue Rule "A tensor or a struct passed by value" "";
    G022 HostCollection Lint "Host slices, strings and collections as parameters" "the types reject anything with another name, by G054";
    G023 FloatKey Lint "A float as a key" "the types reject an alias, by G056; `max_recordings` limits a float converted to an integer";
    G024 KeyMisuse Rule "`#[key]` on a reference or on device data" "";
    G025 HostParameter Rule "`#[host]` on something other than `&Tensor` or `&Scalar`" "";
    G026 MutParameter Rule "A `&mut` parameter" "";
    G027 Handle Lint "A step, a runtime, a stream or another handle as a parameter" "the types reject it, since no handle implements `LiveIn` (G050, G055)";

    G030 DimsEntry Rule "An entry of `#[dims]` that is not a dimension" "";
    G031 DimsTarget Rule "`#[dims]` on something other than a tensor" "";
    G032 DimsContradiction Lint "Dimensions that contradict the body" "every operation checks its shapes during warm-up (`Error::Shape`)";
    G033 DimsSymbol Lint "A symbol of `#[dims]` that the body uses as a value" "rustc rejects it if there is no such constant; otherwise sizes are unified at the call (`Error::DimsDisagree`)";
    G034 SizeAsNumber Lint "The size of a dimension used as a number" "rustc rejects it, since `Dim` is a different type than `usize` (E0308, E0277, E0605)";

    G040 HostRead Lint "Reading a tensor on the host" NO_READS;
    G041 FormatsTensor Lint "Printing the elements of a tensor" NO_READS;
    G042 ConvertsTensor Lint "Converting a tensor into a host value" NO_READS;
    G043 Operator Lint "Operators and comparisons on tensors" NO_READS;
    G044 Indexing Lint "Indexing, slicing and masking a tensor" NO_READS;
    G045 DeviceControlFlow Lint "Branching, looping and matching on device data" NO_READS;
    G046 DataDependentShape Lint "An operation whose result size depends on values" "the types reject it, since only `Eager` has these operations, and they return `Ragged`, which cannot be a live-in (G051)";
    G047 MutatesTensor Lint "Modifying a tensor in place" "the types reject it, since operations that write accept only `State` (rustc's E0308, E0599)";
    G048 Synchronises Lint "Waiting for the device inside a segment" "the types reject it, since a value that can wait cannot be a live-in (G050), and it is `Error::CapabilityInSegment` in every mode";

    G050 EntersSegment Type "A value that cannot be part of a segment's key" "";
    G051 EagerEntersSegment Lint "A value from eager code that enters a segment without `#[key]`" KEYED;
    G052 LeavesSegment Type "A value that a replay cannot return" "";
    G053 GraphResult Type "A result that a replay cannot return" "";
    G054 GraphParams Type "A parameter that is not a struct of parameters" "";
    G055 GraphInput Type "A value of a step that a graph cannot accept" "";
    G056 GraphKey Type "A type that cannot be a key" "";
    G057 UserError Type "An error type that cannot hold ours" "";
    G058 ParamField Type "A host field of a struct of parameters" "";
    G059 ConfigField Type "A `#[config]` field that cannot be compared by value" "";

    G060 NeedsPiecewise Type "A function with boundaries called as plain code" "";
    G061 PiecewiseTarget Rule "`#[piecewise]` on something other than a call" "";
    G062 PiecewiseArgument Rule "An argument of a `#[piecewise]` call that does more than name a value" "";
    G063 BoundaryPosition Rule "A boundary in the middle of an expression" "";
    G064 NestedBoundary Rule "A boundary in a closure, an async block or another region" "";
    G065 HostOperation Lint "A device operation outside of segments and regions" "it is `Error::OutsideSegment`, in every mode, on the first call";
    G066 Recursion Lint "A function with boundaries that calls itself" "a function that calls itself through another one overflows the stack, unless host values end the recursion";
    G067 Guard Type "A guard held across a boundary" "";
    G068 PiecewisePlain Type "`#[piecewise]` on a call of a plain function" "";
    G069 MoveBlocked Lint "A region that cannot be moved because of its dependences" "rustc rejects a variable that was missed (E0425, E0382, E0502 and the like); for memory that is reached under two names, the declaration `early` or `late` is trusted";

    G070 Prints Lint "Printing in a segment" "nothing detects it; the results are correct, but the line appears only once";
    G071 UnknownMacro Lint "A macro that may bind a name used after its segment" "rustc does not find the name (E0425); if the name already exists, there is an error when the segment is first run";
    G072 InputOutput Lint "Files, network and processes in a segment" TRACE;
    G073 Clock Lint "Clocks in a segment" TRACE;
    G074 Randomness Lint "Host randomness in a segment" TRACE;
    G075 Threads Lint "Threads, locks and waiting in a segment" TRACE;
    G076 Environment Lint "The environment of the process in a segment" TRACE;
    G077 Ambient Lint "Statics, cells and atomics in a segment" TRACE;
    G078 WritesThrough Lint "Writing through a reference in a segment" "rustc rejects it (E0594, E0596), since graph functions have no `&mut`";
    G079 Await Rule "`await` in a graph function" "";

    G080 MoveClosure Lint "A closure over a variable that changes" "rustc's borrow checker rejects most cases; otherwise values are wrong, which `audit_every(n)` detects";
    G081 ShadowedCapture Lint "A closure whose captures are shadowed" "";
    G082 ConfusingName Lint "A name with two meanings" "";
    G083 ChangingClosure Lint "A closure that changes a variable, in a segment and in host code" "rustc's borrow checker rejects it (E0502)";
    G084 ReplacedClosure Lint "A pointer to a function that is replaced, and used behind a boundary" "values are wrong, which `audit_every(n)` detects";
    G085 MacroNames Lint "A macro that names a variable, called in a segment" "rustc rejects most cases, since code of a segment borrows nothing from host code (E0373, E0277)";

    G090 DeriveTarget Rule "A type that the derive cannot work on" "";
    G091 FieldRole Rule "A field whose attributes do not fit it" "";
    G092 LoadIncomplete Rule "A field that does not state how it is loaded" "";
    G093 LoadContradiction Rule "A loading attribute that contradicts the field" "";

    G100 OutlivesStep Type "A tensor used after its step" "";
    G101 OverlappingSteps Type "Two steps at once" "tensors of two runtimes have the same type; mixing them is `Error::DifferentRuntimes`, at the first operation";
    G102 HiddenRead Type "Reading device data through an alias, a generic or a helper" "";
    G103 NotState Type "Writing to something that is not a `State`" "";
    G104 MissingLifetime Type "`E0106: missing lifetime specifier`: a tensor without the lifetime of its step" "";
    G105 BorrowedForStep Lint "A reference to a tensor that lives as long as the step" "rustc rejects it, at the attribute (E0716)";

    G110 KernelItem Rule "`#[kernel]` on what is not a function of values" "";
    G111 KernelType Rule "A type that kernels do not have" "";
    G112 KernelSyntax Rule "Syntax that kernels do not have" "";
    G113 KernelLoop Rule "A loop that nothing bounds" "";
    G114 KernelMethod Rule "A method that kernels do not have" "";
    G115 KernelPattern Rule "A pattern that kernels do not have" "";
    G116 KernelMismatch Rule "Types that do not agree in a kernel" "";
    G117 KernelLiteral Rule "A number in a kernel that its type does not hold, or without a type" "";
    G118 KernelRecursion Rule "A kernel that calls itself" "";
    G119 KernelRow Rule "A row or a view of a kernel where it cannot be" "";

    G120 DevicePosition Rule "`#[device]` on what the device cannot decide" "";
    G121 DevicePattern Rule "A pattern of a `#[device]` `if`, `while` or `match` that is not an integer" "";
    G122 DeviceJump Rule "A jump out of a `#[device]` `if`, `while` or `match`" "";
    G123 DeviceBoundary Rule "A boundary inside a `#[device]` `if`, `while` or `match`" "";
    G124 DevicePredicate Type "A predicate or an index that is not a value of the device" "";
    G125 DeviceCarried Type "A value of the host that leaves a `#[device]` `if`, `while` or `match`" "";
    G126 DeviceHostChange Lint "A value of the host that a `#[device]` body changes" "rustc rejects it: bodies cannot change the variables around them, nor fields beside those that they assign (E0594, E0596), and what they assign is a value of the device (G125). Nothing sees a change behind a shared reference, in a `Cell` or a `RefCell`";
    G127 DeviceElse Lint "A `#[device] if` without `else` whose value is used" "rustc rejects it, since an `if` without `else` has no value (E0317)";
    G128 DeviceOperator Lint "An operator of the host in the predicate of a `#[device] if` or `while`" "rustc rejects it: operators take host `bool`s (E0308), and their result is not a predicate (G124)";
    G129 DevicePredicateChange Lint "A variable that the predicate of a `#[device] while` changes" "rustc rejects it, since predicates cannot change the variables around them (E0384, E0594)";
}
