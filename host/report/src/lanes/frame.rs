//! The widths that a chart is drawn for, and where things begin on them.

/// For what width a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Names beside the bars, for a page on a screen.
    Wide,
    /// Names above the bars, for a telephone.
    Narrow,
    /// Names beside the bars, for a picture that stands alone.
    Picture,
}

impl Frame {
    /// The width in pixels.
    pub(crate) fn width(self) -> f64 {
        match self {
            Frame::Wide => 1160.0,
            Frame::Narrow => 350.0,
            Frame::Picture => 1000.0,
        }
    }

    /// Where the bars begin: right of the names, or under them.
    pub(super) fn left(self) -> f64 {
        match self {
            Frame::Wide => 254.0,
            Frame::Narrow => 2.0,
            Frame::Picture => 258.0,
        }
    }

    pub(super) fn right(self) -> f64 {
        match self {
            Frame::Wide | Frame::Picture => self.width() - 16.0,
            Frame::Narrow => self.width() - 4.0,
        }
    }

    pub(super) fn lane_x(self) -> f64 {
        match self {
            Frame::Picture => 16.0,
            Frame::Wide | Frame::Narrow => 0.0,
        }
    }

    pub(super) fn name_x(self) -> f64 {
        match self {
            Frame::Wide => 128.0,
            Frame::Narrow => 2.0,
            Frame::Picture => 142.0,
        }
    }

    pub(super) fn is_narrow(self) -> bool {
        self == Frame::Narrow
    }
}
